/* main.c: the only main(); everything else is in the library. */
#include "cli/command.h"

int main(int argc, char **argv)
{
    return fr_cli_main(argc, argv, stdout, stderr);
}
