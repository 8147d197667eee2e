package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// keyPair is an S3 identity.
type keyPair struct{ id, secret, token string }

// readCredentials reads "file" or "file#profile", an ini file as the AWS tools
// write it. credential_process and other keys that run commands are not
// followed. Errors name lines, never values.
func readCredentials(reference string) (keyPair, error) {
	file, profile, _ := strings.Cut(reference, "#")
	if profile == "" {
		profile = "default"
	}
	if file == "" {
		return keyPair{}, errors.New("object store: no credentials file is configured")
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return keyPair{}, fmt.Errorf("object store credentials: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return keyPair{}, fmt.Errorf("object store credentials: %w", err)
	}
	if !info.Mode().IsRegular() {
		return keyPair{}, fmt.Errorf("object store credentials: %s is not a file", file)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return keyPair{}, fmt.Errorf("object store credentials: %s has mode %04o and others can read it; run: chmod 600 %s", file, perm, file)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return keyPair{}, fmt.Errorf("object store credentials: %w", err)
	}
	key := parseCredentials(string(text), profile)
	if key.id == "" || key.secret == "" {
		return keyPair{}, fmt.Errorf("object store credentials: %s has no aws_access_key_id and aws_secret_access_key under [%s]", file, profile)
	}
	return key, nil
}

func parseCredentials(text, profile string) keyPair {
	var key keyPair
	section := "default"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line[1:len(line)-1]), "profile "))
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || section != profile || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "aws_access_key_id":
			key.id = value
		case "aws_secret_access_key":
			key.secret = value
		case "aws_session_token":
			key.token = value
		}
	}
	return key
}
