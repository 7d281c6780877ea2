#!/usr/bin/env python3
"""Draws a trace of a batchrpc::Profiler (Profiler::export_chrome_trace) as an SVG: one row per thread,
arrows from calls to their handlers, to batches, and back.

  scripts/draw_trace.py TRACE.json PICTURE.svg [--title TEXT] [--last CALLS]

--last: draw only the last CALLS calls and the operations that ran for them.
"""
import argparse
import json
from xml.sax.saxutils import escape

WIDTH, LEFT, LINE, LEVEL = 1000, 150, 18, 15
COLORS = {  # for categories and phases, from Okabe and Ito; lighter under text
    'call': '#a8cbe6', 'handler': '#f5c97a', 'operator': '#8fd3b6', 'batch': '#d9a5c5',
    'encode': '#56b4e9', 'queued': '#bbbbbb', 'wire': '#dddddd', 'waiting': '#e69f00', 'reply': '#dddddd', 'decode': '#56b4e9',
}


def parse_trace(path, last):
    events = json.load(open(path))['traceEvents']
    names = {}
    slices = []
    flows = {}  # arrow events by arrow id
    for event in events:
        if event['ph'] == 'M' and event['name'] == 'process_name':
            names[event['pid'], None] = event['args']['name']
        elif event['ph'] == 'M' and event['name'] == 'thread_name':
            names[event['pid'], event['tid']] = event['args']['name']
        elif event['ph'] == 'X':
            slices.append(event)
        elif event['ph'] in 'stf':
            flows.setdefault(event['id'], []).append(event)
    if last:
        calls = sorted((s for s in slices if s['cat'] == 'call'), key=lambda s: s['ts'])[-last:]
        begin = min(call['ts'] for call in calls)
        slices = [s for s in slices if s['ts'] >= begin]
    rows = {(s['pid'], s['tid']) for s in slices}
    begin, end = min((s['ts'] for s in slices), default=0), max((s['ts'] + s['dur'] for s in slices), default=0)
    arrows = []
    for events in flows.values():
        events = sorted(events, key=lambda e: ('stf'.index(e['ph']), e['ts']))
        arrows += [(start, stop) for start, stop in zip(events, events[1:])
                   if all((e['pid'], e['tid']) in rows and begin <= e['ts'] <= end for e in (start, stop))]
    return names, slices, arrows


def nested_levels(slices):
    """For each slice, the number of slices of its row that enclose it."""
    levels = []
    open_until = []
    for event in sorted(slices, key=lambda s: (s['ts'], -s['dur'])):
        while open_until and open_until[-1] <= event['ts'] + 1e-9 and event['dur'] > 0:
            open_until.pop()
        levels.append((event, len(open_until)))
        open_until.append(event['ts'] + event['dur'])
    return levels


def draw(names, slices, arrows, title):
    begin = min(s['ts'] for s in slices)
    end = max(s['ts'] + s['dur'] for s in slices)
    scale = (WIDTH - LEFT - 20) / max(end - begin, 1e-3)
    out = []
    y = 40
    rows = {}
    middles = {}  # the middle of each row's first line
    for event in slices:
        rows.setdefault((event['pid'], event['tid']), []).append(event)
    process = None
    for pid, tid in sorted(rows):
        if pid != process:
            process = pid
            y += 10
            out.append(f'<text x="8" y="{y + 13}" font-weight="bold">{escape(names.get((pid, None), str(pid)))}</text>'
                       f'<line x1="0" x2="{WIDTH}" y1="{y - 2}" y2="{y - 2}" stroke="#999"/>')
            y += LINE
        levels = nested_levels(rows[pid, tid])
        middles[pid, tid] = y + LEVEL / 2
        out.append(f'<text x="20" y="{y + 12}">{escape(names.get((pid, tid), str(tid)))}</text>')
        for event, level in levels:
            x, width = LEFT + (event['ts'] - begin) * scale, max(event['dur'] * scale, 0.7)
            top = y + level * LEVEL
            name = event['name']
            color = COLORS.get(name if event['cat'] == 'phase' else event['cat'], '#cccccc')
            out.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{LEVEL - 1}" fill="{color}">'
                       f'<title>{escape(name)}: {event["dur"]:.1f} us</title></rect>')
            if width > 7 * min(len(name), 3) + 4:
                room = int((width - 4) / 6.2)
                shown = name if len(name) <= room else name[:max(room - 1, 1)] + '…'
                out.append(f'<text x="{x + 2:.1f}" y="{top + 11}">{escape(shown)}</text>')
        y += (1 + max(level for _, level in levels)) * LEVEL + 5
    for start, stop in arrows:
        ends = [(LEFT + (e['ts'] - begin) * scale, middles[e['pid'], e['tid']]) for e in (start, stop)]
        (x1, y1), (x2, y2) = ends
        out.append(f'<path d="M{x1:.1f},{y1} C{x1 + 12:.1f},{y1} {x2 - 12:.1f},{y2} {x2:.1f},{y2}" fill="none" '
                   f'stroke="#555" stroke-width="0.8" marker-end="url(#head)"/>')
    step = 10 ** max(0, len(str(int(end - begin))) - 1)
    axis = []
    for i in range(int((end - begin) / step) + 1):
        x = LEFT + i * step * scale
        axis.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="36" y2="{y}" stroke="#e4e4e4"/>'
                    f'<text x="{x:.1f}" y="32" fill="#666">{i * step / 1000:g} ms</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" viewBox="0 0 {WIDTH} {y + 10}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
            f'<marker id="head" markerWidth="6" markerHeight="6" refX="5" refY="3" orient="auto">'
            f'<path d="M0,0 L6,3 L0,6 z" fill="#555"/></marker>'
            f'<text x="8" y="18" font-size="14">{escape(title)}</text>' + ''.join(axis) + ''.join(out) + '</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('trace')
    parser.add_argument('picture')
    parser.add_argument('--title', default='')
    parser.add_argument('--last', type=int, default=0)
    arguments = parser.parse_args()
    try:
        names, slices, arrows = parse_trace(arguments.trace, arguments.last)
        if not slices:
            raise SystemExit(f'draw_trace: {arguments.trace} has no slices')
        drawn = draw(names, slices, arrows, arguments.title)
        with open(arguments.picture, 'w') as picture:
            picture.write(drawn)
    except OSError as error:
        raise SystemExit(f'draw_trace: {error.filename}: {error.strerror}')
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SystemExit(f'draw_trace: {arguments.trace} is not a trace of a batchrpc::Profiler')


if __name__ == '__main__':
    main()
