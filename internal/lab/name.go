package lab

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tuneplane/tp/internal/shell"
)

// maxName bounds a name in bytes: with the run id behind it, it stays within
// the 255 bytes of a file name and of Slurm's job name.
const maxName = 128

// CheckName says whether an experiment may have this name: any text of at most
// 128 bytes without control characters and '/', not beginning with '.'.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a name is needed")
	case len(name) > maxName:
		return fmt.Errorf("a name has at most %d bytes, this one has %d", maxName, len(name))
	case strings.HasPrefix(name, "."):
		return fmt.Errorf("a name does not begin with a dot")
	case strings.Contains(name, "/"):
		return fmt.Errorf("a name has no slash")
	case !utf8.ValidString(name):
		return fmt.Errorf("a name is UTF-8 text")
	}
	return shell.Check("the name", name)
}

// checkProject is CheckName for a project, which may be empty.
func checkProject(name string) error {
	if name == "" {
		return nil
	}
	return CheckName(name)
}
