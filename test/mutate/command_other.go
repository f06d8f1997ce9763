//go:build !unix

package main

import "os/exec"

func owned(*exec.Cmd) {}
