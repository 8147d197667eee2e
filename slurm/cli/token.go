package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
)

// Token runs "scontrol token", which mints a JWT for the caller. Its life is
// Slurm's default (30 minutes) unless the site caps it.
func (t Tools) Token(ctx context.Context) (string, error) {
	out, err := t.call("scontrol", "token").output(ctx)
	if err != nil {
		return "", err
	}
	return ParseToken(out)
}

// TokenFrom runs a site's own command that prints a token.
func (t Tools) TokenFrom(ctx context.Context, argv []string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("the token command is empty")
	}
	c := t.program(argv[0], argv[1:]...)
	c.slurm = filepath.Base(argv[0]) == "scontrol"
	out, err := c.output(ctx)
	if err != nil {
		return "", err
	}
	return ParseToken(out)
}

// ClusterName is that of the cluster that the commands talk to.
func (t Tools) ClusterName(ctx context.Context) (string, error) {
	config, err := t.Config(ctx)
	if err != nil {
		return "", err
	}
	if name := config.Get("ClusterName"); name != "" {
		return name, nil
	}
	return "", errors.New("scontrol show config: no ClusterName")
}

// ParseToken finds the token in "SLURM_JWT=…" or in a line of its own.
func ParseToken(out []byte) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		line = strings.TrimPrefix(line, "export ")
		if line, _ = strings.CutPrefix(line, "SLURM_JWT="); line == "" {
			continue
		}
		if strings.Count(line, ".") != 2 || strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return "", errors.New("no token in the answer: want SLURM_JWT=<three parts>")
		}
		return line, nil
	}
	return "", errors.New("no token in the answer: it is empty")
}
