package child

import "os/exec"

// Windows has neither such groups nor a way to ask: the program alone is ended.

func ownGroup(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) { cmd.Process.Kill() }

func kill(cmd *exec.Cmd) { cmd.Process.Kill() }
