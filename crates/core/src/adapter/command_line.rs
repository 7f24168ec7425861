//! Declares how to recognize an agent's programs, and what their arguments mean.
//!
//! Each agent declares that as a [`CommandLine`], which is data. What is the same for
//! all agents is handled here: scripts behind the options of their runtime, titles in
//! place of arguments, version suffixes, `.exe`, executables that can't be read, options
//! with values before a subcommand. Loaders, emulators, links and the names of wrappers
//! are looked through before ([`what_it_runs`](crate::sources::recognize::what_it_runs)).

mod path_pattern;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use self::path_pattern::{is_name, matches, name_of};
use super::options::{self, Given};
use super::program::cut;
use super::runtime::{NODE_MAIN_THREAD, Run, Runtime};
use super::{Program, Role};
use crate::sources::recognize::unwrapped_name;

/// How an agent's programs look, and what their arguments mean.
///
/// Lists of words hold subcommands (`resume`; `exec resume` for the second word) and
/// options (`--fork`; `--output=json` for one value), in which the first match counts.
#[derive(Debug)]
pub struct CommandLine {
    /// The runtime of the scripts and of programs that put a title over their arguments.
    pub(crate) runtime: Runtime,
    /// The forms in which the programs appear, and what each of them is.
    pub(crate) programs: &'static [(Is, &'static [Form])],
    /// Executables that contain a runtime, and count only with a title of the agent.
    pub(crate) packed: &'static [&'static str],
    /// Whether what has the agent's executable is another program all the same, a
    /// built-in tool for example.
    pub(crate) is_another: fn(&Program<'_>) -> bool,

    /// Options may stand before a subcommand. If not, only the first argument counts as one,
    /// even an option.
    pub(crate) commands_follow_options: bool,
    /// The options that take a value, besides those that name a session or a directory: all
    /// of them if commands follow options, else those with one letter.
    pub(crate) options_with_value: &'static [&'static str],

    /// What a process with no word of the lists below is.
    pub(crate) role: Role,
    /// What a process with another subcommand is, if all subcommands are known.
    pub(crate) role_of_other_command: Option<Role>,
    /// What a process with these subcommands is.
    pub(crate) commands: &'static [(Role, &'static [&'static str])],
    /// What a process with these options anywhere is. An auxiliary subcommand wins.
    pub(crate) options: &'static [(Role, &'static [&'static str])],

    /// Where the arguments name a session.
    pub(crate) session: &'static [Named],
    /// The session's id, or the prefix of one, in a word that stands there, if it is one. It
    /// gets the option or subcommand, and the word, which is neither empty nor an option.
    pub(crate) id_in: for<'a> fn(&str, &'a str) -> Option<&'a str>,
    /// The words with which the process works in a fork of the session that is named.
    pub(crate) forks: &'static [&'static str],
    /// The words with which the process resumes some session.
    pub(crate) continues: &'static [&'static str],

    /// The words with which the process runs without a person at a terminal.
    pub(crate) headless: &'static [&'static str],
    /// The words with which a person is there all the same.
    pub(crate) attended: &'static [&'static str],

    /// The options that name the directory that the process works in.
    pub(crate) directory: &'static [&'static str],
    /// The process may change to that directory itself, so that a relative path can't be
    /// resolved.
    pub(crate) may_change_directory: bool,

    /// Variables of which a launcher sets one for the program that it starts: a process
    /// that has none of them set is a launcher, whatever else it looks like.
    pub(crate) variables_of_launched: &'static [&'static str],
}

/// What a program in some form is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    /// A wrapper above the real process.
    Launcher,
    /// A server of many sessions, unless an option makes it auxiliary.
    Host,
    /// Never the process of a session.
    Auxiliary,
    /// The arguments decide.
    ByArguments,
}

/// One form in which a program appears.
///
/// A path is compared from its end: `bin/codex` means a file `codex` in a folder `bin`
/// or `.bin`, `codex-*` any such name, `claude/#` a version number in the folder, and
/// `@charmland/crush/**` all files in the package.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// A native executable. Where the path can't be read, argument 0 has to be this path,
    /// and the kernel's name for the process one of the agent's.
    Executable(&'static str),
    /// An executable with Node inside: Node names its main thread.
    NodeExecutable(&'static str),
    /// A script that a runtime runs.
    Script(&'static str),
    /// A module of Python.
    Module(&'static str),
    /// A text that the program puts over its arguments, where the executable is the
    /// runtime, a packed one, or can't be read.
    Title(&'static str),
    /// The same for a text that other programs use too: the executable must be visible.
    CommonTitle(&'static str),
}

/// Where arguments name a session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Named {
    /// These options, which are one option with several names. The last of them counts.
    Option(&'static [&'static str]),
    /// The same with a subcommand, with which nothing else counts.
    OptionOf(&'static str, &'static [&'static str]),
    /// The word behind a subcommand, with which nothing else counts.
    WordAfter(&'static str),
}

impl CommandLine {
    /// An agent without any program, to declare others from.
    pub(crate) const NONE: Self = Self {
        runtime: Runtime::JavaScript,
        programs: &[],
        packed: &[],
        is_another: |_| false,
        commands_follow_options: false,
        options_with_value: &[],
        role: Role::Session,
        role_of_other_command: None,
        commands: &[],
        options: &[],
        session: &[],
        id_in: |_, word| Some(word),
        forks: &[],
        continues: &[],
        headless: &[],
        attended: &[],
        directory: &[],
        may_change_directory: false,
        variables_of_launched: &[],
    };

    /// Returns the role of a process; `None` if it is no process of the agent.
    ///
    /// The executable and the arguments decide, a title only where the program puts one
    /// over its arguments, and never the kernel's name for the process alone.
    #[must_use]
    pub fn recognize(&self, program: &Program<'_>) -> Option<Role> {
        let (is, arguments) = self.find(program)?;
        Some(match is {
            Is::Launcher => Role::Launcher,
            Is::Auxiliary => Role::Auxiliary,
            // Unreadable arguments leave several roles. `Host` excludes the fewest
            // sessions: a host keeps every session that it holds.
            _ if program.details.argv.is_err() => Role::Host,
            Is::Host => self
                .role_by_option(arguments)
                .filter(|role| *role == Role::Auxiliary)
                .unwrap_or(Role::Host),
            Is::ByArguments => self.role_by(arguments),
        })
    }

    /// The names that the programs go by, without patterns.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let forms = self.programs.iter().flat_map(|(_, forms)| *forms);
        let names = forms
            .filter_map(Form::name)
            .chain(self.packed.iter().copied());
        names.filter(|name| !name.contains(['*', '#']))
    }

    /// Whether a process of the agent may have this name in the process table, so that
    /// it is worth a closer look.
    #[must_use]
    pub fn may_be_called(&self, comm: &str) -> bool {
        if comm == NODE_MAIN_THREAD {
            return self.runs_in_node();
        }
        self.is_called(comm) || unwrapped_name(comm).is_some_and(|inner| self.is_called(inner))
    }

    fn is_called(&self, comm: &str) -> bool {
        let is_cut = |name: &str| cut(name) == comm.as_bytes();
        let plain = comm.strip_suffix(".exe").unwrap_or(comm);
        let mut forms = self.programs.iter().flat_map(|(_, forms)| *forms);
        let mut packed = self.packed.iter();
        forms.any(|form| {
            let name = form.name();
            name.is_some_and(|name| is_cut(name) || is_name(name, plain))
        }) || packed.any(|name| *name == plain || is_cut(name))
    }

    /// Whether Node may run the agent's own process, and so give a name to it.
    fn runs_in_node(&self) -> bool {
        let is_in_node = |form: &Form| match form {
            Form::NodeExecutable(_) => true,
            Form::Script(_) => self.runtime == Runtime::JavaScript,
            _ => false,
        };
        let mut programs = self.programs.iter();
        programs.any(|(is, forms)| *is == Is::ByArguments && forms.iter().any(is_in_node))
    }

    /// Whether the name or an argument of a process contains a name of the agent: what a
    /// runtime runs is in the arguments, so that the name of the runtime proves nothing.
    pub(crate) fn are_mentioned_by(&self, program: &Program<'_>) -> bool {
        self.names().any(|name| {
            let has = |bytes: &[u8]| {
                let mut windows = bytes.windows(name.len());
                windows.any(|window| window.eq_ignore_ascii_case(name.as_bytes()))
            };
            let mut words = program.argv().iter();
            has(&program.process.comm) || words.any(|word| has(word.as_encoded_bytes()))
        })
    }

    /// The session that the process's arguments name: an id, or the prefix of one. A
    /// process that moves on to another session keeps its arguments.
    #[must_use]
    pub fn session<'a>(&self, program: &Program<'a>) -> Option<&'a str> {
        let (arguments, named) = self.named(program)?;
        let may_fork = program.details.is_argv_cut && !self.forks.is_empty();
        (!may_fork && !self.has_any(arguments, self.forks)).then_some(named)
    }

    /// The session that the arguments name as the one to fork.
    #[must_use]
    pub fn forked_session<'a>(&self, program: &Program<'a>) -> Option<&'a str> {
        let (arguments, named) = self.named(program)?;
        self.has_any(arguments, self.forks).then_some(named)
    }

    /// Whether the process resumes some session, or a fork of it.
    #[must_use]
    pub fn continues(&self, program: &Program<'_>) -> bool {
        self.has(program, self.continues)
    }

    /// Whether the process runs without a person at a terminal.
    #[must_use]
    pub fn is_headless(&self, program: &Program<'_>) -> bool {
        self.has(program, self.headless) && !self.has(program, self.attended)
    }

    /// The directory that the process works in, by its arguments.
    #[must_use]
    pub fn directory(&self, program: &Program<'_>) -> Option<PathBuf> {
        let named = self.option(program, self.directory)?;
        let is_fixed = !self.may_change_directory || Path::new(named).is_absolute();
        is_fixed.then(|| program.resolve(named))?
    }

    /// The value of an option with these names that a process of the agent has.
    pub(crate) fn option<'a>(&self, program: &Program<'a>, names: &[&str]) -> Option<&'a str> {
        let (_, arguments) = self.find(program)?;
        self.value_of(arguments, names).map(|(_, value)| value)
    }

    /// Whether a process of the agent has one of some words.
    pub(crate) fn has(&self, program: &Program<'_>, words: &[&str]) -> bool {
        let found = self.find(program);
        found.is_some_and(|(_, arguments)| self.has_any(arguments, words))
    }

    /// The word behind a subcommand that a process of the agent has.
    pub(crate) fn word_after<'a>(&self, program: &Program<'a>, command: &str) -> Option<&'a str> {
        self.word_behind(self.find(program)?.1, command)?
    }

    /// The form that a process has, and the arguments that are meant for the agent.
    fn find<'a>(&self, program: &Program<'a>) -> Option<(Is, &'a [OsString])> {
        let run = program.run_of(self.runtime);
        let argv = program.argv();
        let found = self.programs.iter().find_map(|(is, forms)| {
            let mut at = forms.iter().filter_map(|form| self.at(form, program, run));
            Some((*is, at.next()?))
        });
        let (is, at) = found.filter(|_| !(self.is_another)(program))?;
        Some((is, argv.get(at + 1..).unwrap_or_default()))
    }

    /// Where a program of this form stands among the process's arguments.
    fn at(&self, form: &Form, program: &Program<'_>, run: Option<Run>) -> Option<usize> {
        match *form {
            Form::Executable(path) => self.executes(path, program).then_some(0),
            Form::NodeExecutable(path) => {
                let is_node = program.comm() == Some(NODE_MAIN_THREAD);
                (is_node && self.executes(path, program)).then_some(0)
            }
            Form::Script(path) => match run? {
                Run::Script(at) if matches(path, Path::new(program.argv().get(at)?)) => Some(at),
                _ => None,
            },
            Form::Module(name) => match run? {
                Run::Module(at) if program.argv().get(at)? == name => Some(at),
                _ => None,
            },
            Form::Title(text) => (program.title()? == text
                && (program.exe().is_none() || self.carries_title(program)))
            .then_some(0),
            Form::CommonTitle(text) => {
                (program.title()? == text && self.carries_title(program)).then_some(0)
            }
        }
    }

    fn executes(&self, path: &str, program: &Program<'_>) -> bool {
        let is_confirmed = || program.comm().is_some_and(|comm| self.may_be_called(comm));
        let executable = program.exe_or_argument_0();
        executable.is_some_and(|executable| matches(path, executable))
            && (program.exe().is_some() || is_confirmed())
    }

    fn carries_title(&self, program: &Program<'_>) -> bool {
        program.exe_name().is_some_and(|name| {
            let plain = name.strip_suffix(".exe").unwrap_or(name);
            Runtime::named(name) == Some(self.runtime) || self.packed.contains(&plain)
        })
    }

    fn role_by(&self, arguments: &[OsString]) -> Role {
        let mut commands = self.commands.iter();
        let known = commands.find(|(_, words)| self.has_any_command(arguments, words));
        let has_other = || !self.words(arguments).is_empty();
        let by_command = match known {
            Some((role, _)) => Some(*role),
            None => self.role_of_other_command.filter(|_| has_other()),
        };
        match by_command {
            Some(Role::Auxiliary) => Role::Auxiliary,
            _ => self
                .role_by_option(arguments)
                .or(by_command)
                .unwrap_or(self.role),
        }
    }

    fn role_by_option(&self, arguments: &[OsString]) -> Option<Role> {
        let mut options = self.options.iter();
        let (role, _) = options.find(|(_, words)| self.has_any(arguments, words))?;
        Some(*role)
    }

    /// The session that the arguments of the agent's own process name, forked or not.
    fn named<'a>(&self, program: &Program<'a>) -> Option<(&'a [OsString], &'a str)> {
        let (is, arguments) = self.find(program)?;
        let has_session = matches!(is, Is::ByArguments | Is::Launcher);
        if !has_session || self.role_by(arguments) == Role::Auxiliary {
            return None;
        }
        let (by, value) = self.session.iter().find_map(|named| match *named {
            Named::Option(names) => self.value_of(arguments, names).map(Some),
            Named::OptionOf(command, names) => self
                .has_any_command(arguments, &[command])
                .then(|| self.value_of(arguments, names)),
            Named::WordAfter(command) => self
                .word_behind(arguments, command)
                .map(|word| Some((command, word?))),
        })??;
        let value = value.trim();
        let value = Some(value).filter(|value| !value.is_empty() && !value.starts_with('-'))?;
        Some((arguments, (self.id_in)(by, value)?))
    }

    /// Whether the arguments have one of some words: subcommands, or options anywhere.
    fn has_any(&self, arguments: &[OsString], words: &[&str]) -> bool {
        words.iter().any(|word| {
            if word.starts_with('-') {
                self.has_option(arguments, word)
            } else {
                self.has_any_command(arguments, &[word])
            }
        })
    }

    fn has_any_command(&self, arguments: &[OsString], commands: &[&str]) -> bool {
        let mut commands = commands.iter();
        commands.any(|command| self.word_behind(arguments, command).is_some())
    }

    /// Whether an option is among arguments, with any value or without, or with the value that
    /// `wanted` has.
    fn has_option(&self, arguments: &[OsString], wanted: &str) -> bool {
        if let Some((name, right)) = wanted.split_once('=') {
            return self.value_of(arguments, &[name]) == Some((name, right));
        }
        let given = self.read(arguments, &[]);
        let mut options = given.iter();
        options.any(|given| matches!(given, Given::Option(name, _) if name.is(wanted)))
    }

    /// The value of an option with some names, with the name that stands there.
    fn value_of<'a, 'n>(
        &self,
        arguments: &'a [OsString],
        names: &[&'n str],
    ) -> Option<(&'n str, &'a str)> {
        options::value_of(&self.read(arguments, names), names)
    }

    /// The parts of arguments, where the `asked` options take a value too.
    fn read<'a>(&self, arguments: &'a [OsString], asked: &[&str]) -> Vec<Given<'a>> {
        options::read(arguments, |name| {
            let mut session = self.session.iter();
            name.is_one_of(asked)
                || name.is_one_of(self.options_with_value)
                || name.is_one_of(self.directory)
                || session.any(|named| match named {
                    Named::Option(names) => name.is_one_of(names),
                    Named::OptionOf(..) | Named::WordAfter(_) => false,
                })
        })
    }

    /// The word after a subcommand: `None` if the arguments have another subcommand, else the
    /// next word, if any. That may stand behind `--`, as no subcommand does.
    fn word_behind<'a>(&self, arguments: &'a [OsString], command: &str) -> Option<Option<&'a str>> {
        let mut words = self.words(arguments).into_iter();
        let mut parts = command.split(' ');
        let behind_options = || {
            let mut arguments = arguments.iter();
            arguments.find(|argument| *argument == "--")?;
            arguments.next()?.to_str()
        };
        parts
            .all(|part| words.next() == Some(part))
            .then(|| words.next().or_else(behind_options))
    }

    /// The arguments that are neither an option nor the value of one. The first argument
    /// counts in any case where commands don't follow options.
    fn words<'a>(&self, arguments: &'a [OsString]) -> Vec<&'a str> {
        let is_command = |_: &&OsString| !self.commands_follow_options;
        let first = arguments.first().filter(is_command);
        let rest = arguments.get(usize::from(first.is_some())..);
        let rest = self.read(rest.unwrap_or_default(), &[]);
        let rest = rest.into_iter().filter_map(|given| match given {
            Given::Word(word) => Some(word),
            Given::Option(..) => None,
        });
        let first = first.map(|first| first.to_str().unwrap_or_default());
        first.into_iter().chain(rest).collect()
    }
}

impl Form {
    /// The name of a program of this form; `None` where the name proves nothing.
    fn name(&self) -> Option<&'static str> {
        match *self {
            Self::Executable(path) | Self::NodeExecutable(path) => Some(name_of(path)),
            // `cli.js` is the script of very many programs.
            Self::Script(path) => Some(name_of(path)).filter(|name| !name.contains(['.', '*'])),
            Self::Module(_) => None,
            Self::Title(text) | Self::CommonTitle(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests;
