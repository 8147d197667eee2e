package bundle

import (
	"io"
	"os"
	"syscall"
)

// source is an open file to pack. os.File would register each one with the
// poller and keep a finalizer, which costs more than reading a small file.
type source struct {
	fd   int
	name string
}

// openSource opens a file; neither a link nor a pipe put in its place is
// followed or waited for.
func openSource(root, name string) (*source, error) {
	for {
		fd, err := syscall.Open(root+"/"+name, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err == nil {
			return &source{fd, name}, nil
		}
		if err != syscall.EINTR { // network file systems mounted "intr"
			return nil, readError(name, &os.PathError{Op: "open", Path: name, Err: err})
		}
	}
}

func (s *source) Close() { syscall.Close(s.fd) } // read only: nothing can be lost

func (s *source) stat() (stat, error) {
	var st syscall.Stat_t
	for {
		err := syscall.Fstat(s.fd, &st)
		if err != syscall.EINTR {
			return statOf(&st), err
		}
	}
}

// readAt fills p; a file that ends before has changed.
func (s *source) readAt(p []byte, at int64) error {
	for len(p) > 0 {
		n, err := syscall.Pread(s.fd, p, at)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return readError(s.name, &os.PathError{Op: "read", Path: s.name, Err: err})
		case n == 0:
			return readError(s.name, io.ErrUnexpectedEOF)
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}
