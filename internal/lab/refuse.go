package lab

import (
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// Reasons why a key has no place in a lab. The files of a lab come from
// whoever wrote the experiment, so they decide about the job and about nothing
// on the machine that submits it.
const (
	runsHere   = "it names a command or a tool that runs on this machine"
	receives   = "it names an endpoint that receives a token or a signed request"
	trusted    = "it says which certificate is trusted"
	isSecret   = "it is a secret or says where one is read"
	sitePolicy = "fleets, hardware registry, storage and policy come from the site file alone"
)

var refusedKeys = map[string]string{
	"tools": runsHere, "tool_path": runsHere, "bin": runsHere, "exec": runsHere, "hook": runsHere, "hooks": runsHere,
	"sbatch": runsHere, "srun": runsHere, "squeue": runsHere, "sacct": runsHere, "scontrol": runsHere, "slurmrestd": runsHere,
	"command": runsHere, "token_command": runsHere, "credentials_command": runsHere, "git": runsHere, "ssh": runsHere,
	"url": receives, "endpoint": receives, "webhook": receives, "proxy": receives, "server": receives, "socket": receives, "s3": receives,
	"ca_file": trusted, "ca": trusted, "cert_file": trusted, "insecure": trusted, "tls": trusted,
	"token": isSecret, "token_file": isSecret, "jwt": isSecret, "secret": isSecret, "secrets": isSecret, "credentials": isSecret,
	"password": isSecret, "api_key": isSecret, "access_key": isSecret, "secret_key": isSecret, "key_file": isSecret,
	"fleet": sitePolicy, "fleets": sitePolicy, "hardware": sitePolicy, "store": sitePolicy, "policy": sitePolicy,
	"images": sitePolicy, "runtimes": sitePolicy, "run_root": sitePolicy, "quota": sitePolicy, "objects": sitePolicy, "state_dir": sitePolicy,
	"default_fleet": sitePolicy, "series": sitePolicy, "plan_ttl": sitePolicy, "poll_seconds": sitePolicy,
	"environment": sitePolicy, "network": sitePolicy, "requests": sitePolicy, "gpu_request": sitePolicy,
	"recipes": sitePolicy,
}

var refusedEndings = []struct{ ending, reason string }{
	{"_command", runsHere}, {"_cmd", runsHere}, {"_bin", runsHere}, {"_url", receives}, {"_endpoint", receives},
	{"_token", isSecret}, {"_secret", isSecret}, {"_password", isSecret}, {"_ca_file", trusted},
}

// freeTables hold names that the experiment makes up.
var freeTables = map[string]bool{"env": true, "params": true}

func refuse(f *tomlfile.File) error {
	for _, key := range f.Keys() {
		name := key.Path[len(key.Path)-1]
		if reason := refusal(key.Path); reason != "" {
			return fault.New(fault.Usage, "%s:%d:%d: %s is refused in a lab: %s", f.Name, key.Line, key.Col, name, reason).
				WithHint("set it in the site file, the user file or by flag")
		}
	}
	return nil
}

func refusal(path []string) string {
	for _, above := range path[:len(path)-1] {
		if freeTables[above] {
			return ""
		}
	}
	name := strings.ToLower(strings.ReplaceAll(path[len(path)-1], "-", "_"))
	if reason := refusedKeys[name]; reason != "" {
		return reason
	}
	for _, r := range refusedEndings {
		if strings.HasSuffix(name, r.ending) {
			return r.reason
		}
	}
	return ""
}
