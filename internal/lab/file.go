package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// maxFile bounds every file that is read from a lab: 4 MiB hold any
// configuration, and a sparse terabyte does not stop the program.
const maxFile = 4 << 20

// ReadFile reads a regular file of a lab, at most 4 MiB. A FIFO or a device in
// its place is refused instead of waited for.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return data, err
}

// WriteFile puts data at path in one step: readers see the old file or the new
// one, also after a crash.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644) // a lab is shared through git; secrets never live in it
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
