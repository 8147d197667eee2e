package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncfs writes out the file system that f is on.
func syncfs(f *os.File) error { return unix.Syncfs(int(f.Fd())) }
