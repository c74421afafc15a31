/* main.c: the only main(); everything else is in the library. */
#include "cli/command.h"

int main(int argc, char **argv)
{
    return fr_cli_main(fr_commands, argc, argv, stdout, stderr);
}
