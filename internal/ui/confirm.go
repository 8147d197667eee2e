package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxAnswer bounds an answer: whatever is longer is not "yes".
const maxAnswer = 1024

// Confirm asks on stderr and reads one line. Only "y" and "yes" are yes; an
// empty line, anything else and the end of input are no. Callers ask only
// where InTTY is true.
func (s *Streams) Confirm(prompt string) (bool, error) {
	if _, err := fmt.Fprint(s.Err, prompt+" [y/N] "); err != nil {
		return false, err
	}
	line, err := s.ReadLine()
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(s.Err) // the terminal has echoed no newline
		err = nil
	}
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// ReadLine reads one line without its end. At the end of input it returns
// io.EOF, also with an unfinished line: an answer that nobody has sent off.
func (s *Streams) ReadLine() (string, error) {
	if s.lines == nil {
		s.lines = bufio.NewReader(s.In)
	}
	var line []byte
	for {
		c, err := s.lines.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if len(line) < maxAnswer {
			line = append(line, c)
		}
	}
}
