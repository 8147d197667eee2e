package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tuneplane/tp/slurm/cli"
)

// tokenSource picks where tokens come from; nil for a socket that needs none.
// A configured source that fails is an error, not a reason to try another:
// the token decides who the user is.
func tokenSource(f Fleet, o Options, unix bool) (source func(context.Context) (string, error), warnings []string) {
	switch {
	case f.TokenFile != "":
		if info, err := os.Stat(f.TokenFile); err == nil && info.Mode().Perm()&0o077 != 0 {
			warnings = append(warnings, fmt.Sprintf("token file %s can be read by others (mode %04o): chmod 600 it", f.TokenFile, info.Mode().Perm()))
		}
		return func(context.Context) (string, error) { return readToken(f.TokenFile) }, warnings
	case len(f.TokenCommand) > 0:
		return func(ctx context.Context) (string, error) { return o.Tools.TokenFrom(ctx, f.TokenCommand) }, nil
	case f.TokenEnv:
		return func(context.Context) (string, error) {
			if o.JWT == "" {
				return "", errors.New("SLURM_JWT is not set")
			}
			return o.JWT, nil
		}, nil
	case unix:
		return nil, nil
	}
	return o.Tools.Token, nil
}

// maxToken is far above any JWT; Slurm's own have some 200 bytes.
const maxToken = 16 << 10

func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return "", err
	}
	if len(raw) > maxToken {
		return "", fmt.Errorf("token file %s holds more than %d KiB", path, maxToken>>10)
	}
	token, err := cli.ParseToken(raw)
	if err != nil {
		return "", fmt.Errorf("token file %s: %w", path, err)
	}
	return token, nil
}
