"""``torc completions``: prints the completion script of a shell; the script calls ``torc`` at each Tab."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.completion import COMPLETE_VARIABLE

_ELVISH: Final = """\
use str

set edit:completion:arg-completer[torc] = {|@words|
  var line = (str:join ' ' $words)
  try {
    env _TORC_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS=$line ^
      torc 2>/dev/null | from-lines | each {|item|
        var value @help = (str:split "\\t" $item)
        edit:complex-candidate $value &display=(str:join ' ' [$value $@help])
      }
  } catch e { }
}
"""


class Shell(StrEnum):
    """Shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    ELVISH = "elvish"


def completions(shell: Annotated[Shell, typer.Argument(help="The shell.", case_sensitive=False)]) -> None:
    """Print the completion script of a shell, to be loaded at the shell's start.

    bash: eval "$(torc completions bash)" in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit.
    fish: torc completions fish > ~/.config/fish/completions/torc.fish.

    Examples:
        torc completions bash > ~/.local/share/bash-completion/completions/torc
        torc completions fish > ~/.config/fish/completions/torc.fish
    """
    print(script(shell))


def script(shell: Shell) -> str:
    """Return the script for a shell."""
    if shell is Shell.ELVISH:
        return _ELVISH.rstrip()
    from typer._completion_shared import get_completion_script

    return get_completion_script(prog_name="torc", complete_var=COMPLETE_VARIABLE, shell=shell.value)


app = single_command(completions)
