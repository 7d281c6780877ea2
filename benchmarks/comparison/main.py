"""The command line of benchmarks/compare."""

import argparse
import json
import shlex
import sys

from . import arguments, figure, machine, page, report, runner, systems
from .suite import UsageError
from .suites import SUITES

ABOUT = """Measures batchrpc, bare sockets and peers in turn, and reports the ratios.

  benchmarks/compare rl                                   one suite
  benchmarks/compare all --quick --json all.json          a little of each
  benchmarks/compare calls --docs docs/performance.md     updates this suite's part of the page
  benchmarks/compare cartpole --help                      the options of a suite

Without a suite it runs all. Run it on an otherwise idle machine. Peers that are not installed
are left out, and reported with the command that installs them. The exit status is 0; 1 if
a command that ran has failed; 2 if nothing could be run, with the reason.
"""


def make_parser():
    parser = argparse.ArgumentParser(
        prog="benchmarks/compare",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="suite", metavar="SUITE", required=True)
    common = arguments.common_options()
    for suite in SUITES.values():
        own = commands.add_parser(
            suite.name, parents=[common], help=suite.title, description=suite.about
        )
        suite.add_options(own.add_argument_group("this suite"))
    commands.add_parser("all", parents=[common], help="all suites, one after the other")
    return parser


def parse(argv):
    """(options, {suite: its options}); with "all" each suite has its defaults."""
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        argv = ["all", *argv]
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.suite != "all":
        return options, {SUITES[options.suite]: options}
    return options, {suite: parser.parse_args([suite.name, *argv[1:]]) for suite in SUITES.values()}


def select(cases, only):
    """The cases with only the wanted systems, and those of the wanted systems that exist."""
    chosen, seen = [], set()
    for case in cases:
        jobs = []
        for job in case.jobs:
            wanted = [each for each in job.systems if each.word in only or each.name in only]
            seen.update(each.word for each in wanted)
            seen.update(each.name for each in wanted)
            if wanted:
                jobs.append(type(job)(wanted, job.commands, job.read))
        if jobs:
            chosen.append(type(case)(case.title, case.metrics, jobs))
    return chosen, seen


def make_cases(options, suites):
    """{suite: cases}, with the systems that --only names."""
    every = {suite: suite.make_cases(own) for suite, own in suites.items()}
    if options.only is None:
        return every
    only = [word.strip() for word in options.only.split(",")]
    chosen, seen = {}, set()
    for suite, cases in every.items():
        chosen[suite], found = select(cases, only)
        seen |= found
    for word in only:
        if word not in seen:
            there = {
                system.word: None
                for cases in every.values()
                for case in cases
                for system in case.systems()
            }
            raise UsageError(f"--only: there is no '{word}'; there are {', '.join(there)}")
    return {suite: cases for suite, cases in chosen.items() if cases}


def figure_path(base, suite, several):
    return base.with_name(f"{base.stem}-{suite.name}{base.suffix}") if several else base


def page_figure(docs, suite):
    return docs.parent / "figures" / f"compare_{suite.name}.svg"


def check_outputs(options, suites):
    """Checks that all files can be written. Raises a UsageError that names one that cannot."""
    for option, path in (("--json", options.json), ("--markdown", options.markdown)):
        if path:
            arguments.check_writable(option, path)
    if options.docs:
        page.check(options.docs, [suite.name for suite in suites])
        arguments.check_writable("--docs", options.docs)
    pictures = []
    if options.figure:
        if options.figure.suffix != ".svg":
            raise UsageError(f"--figure: {options.figure} does not end in .svg")
        for suite in suites:
            picture = figure_path(options.figure, suite, len(suites) > 1)
            pictures += [("--figure", picture), ("--figure", figure.png_of(picture))]
    if options.docs:
        pictures += [("--docs", page_figure(options.docs, suite)) for suite in suites]
    if pictures and not figure.available():
        say(f"no figures: matplotlib is not installed (Debian: {figure.PACKAGE}; {systems.SETUP})")
        return
    for option, picture in pictures:
        arguments.check_writable(option, picture)


def say(text):
    print(text, file=sys.stderr, flush=True)


def print_list(cases_of):
    for suite, cases in cases_of.items():
        print(f"{suite.name}: {suite.title}")
        for case in cases:
            print(f"  {case.title}")
            for job in case.jobs:
                print(f"    {', '.join(system.word for system in job.systems)}")
                for command in job.commands:
                    print(f"      {shlex.join(command)}")


class Writer:
    """Writes the results after each suite, so that an interrupted run loses only one suite."""

    def __init__(self, options, suites, command):
        self.options = options
        self.several = len(suites) > 1
        self.command = command
        self.machine = machine.describe(options.programs)
        self.entries, self.documents = [], []

    def add(self, suite, results):
        options = self.options
        versions = machine.versions(results)
        place = machine.sentence(self.machine, versions)
        if options.figure and figure.available():
            picture = figure_path(options.figure, suite, self.several)
            figure.draw(suite.title, results, [picture, figure.png_of(picture)])
        if options.docs:
            picture = page_figure(options.docs, suite) if figure.available() else None
            if picture:
                figure.draw(suite.title, results, [picture])
            link = f"figures/{picture.name}" if picture else None
            text = report.section(results, place, self.command, options.rounds, link)
            page.write(options.docs, suite.name, text)
        if options.markdown:
            text = report.section(results, place, self.command, options.rounds)
            self.documents.append(report.document(suite, text))
            options.markdown.write_text("\n".join(self.documents), encoding="utf-8")
        if options.json:
            entry = report.to_json(suite, results)
            self.entries.append({**entry, "versions": versions})
            whole = {
                "command": self.command,
                "rounds": options.rounds,
                "machine": self.machine,
                "suites": self.entries,
            }
            options.json.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def run(options, cases_of, command):
    """Whether every command that ran has a result."""
    every = [case for cases in cases_of.values() for case in cases]
    needs = [system.requirement for case in every for system in case.systems()]
    if any(need and need.built for need in needs):
        systems.build_peers(say)
    absent = runner.find_absent(every)
    for name, absence in absent.items():
        say(f"without {name}: {absence.reason}; {absence.install}")
    writer = Writer(options, cases_of, command)
    good = True
    for suite, cases in cases_of.items():
        results = []
        print(f"== {suite.name}: {suite.title}\n", flush=True)
        for case in cases:
            result = runner.run_case(case, absent, options.rounds, options.limit, say)
            good = good and all(absence.install for absence in result.absent.values())
            results.append(result)
            print(report.terminal(result), flush=True)
        writer.add(suite, results)
    return good


def command_of(argv):
    """The command that measures the same again, without paths of this machine."""
    left_out = ("--programs", "--python", "--json", "--markdown", "--figure", "--docs")
    words, here = [], iter(argv)
    for word in here:
        if word in left_out:
            next(here, None)
        elif not word.startswith(tuple(f"{option}=" for option in left_out)):
            words.append(word)
    return shlex.join(["benchmarks/compare", *words])


def main(argv):
    options, suites = parse(argv)
    command = command_of(argv)
    try:
        cases_of = make_cases(options, suites)
        if options.list:
            print_list(cases_of)
            return 0
        check_outputs(options, cases_of)
        return 0 if run(options, cases_of, command) else 1
    except UsageError as error:
        say(f"benchmarks/compare: {error}")
        return 2
    except BrokenPipeError:  # the reader of the list has closed it
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        say("benchmarks/compare: interrupted")
        return 130
