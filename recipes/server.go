package recipes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm/script"
)

// Server is a role that serves the driver over HTTP, on each node of its pool,
// such as a vLLM server. The driver starts when all of them are ready.
type Server struct {
	Role string `toml:"role" json:"role"`
	// Command are its words, see [composer.words]; none for the role's script.
	Command []string `toml:"command" json:"command,omitempty"`
	// Health is the path that answers 200 to GET when it is ready.
	Health string `toml:"health" json:"health"`
	Single bool   `toml:"single" json:"single,omitempty"` // one server, so a pool of one node
}

// Pinning is what makes a framework put its roles where tp's pools are, when
// one Ray cluster has several. Every node has the resource tp_pool_<pool>.
type Pinning string

// Ways of pinning.
const (
	// PinNone: the framework places its workers by free GPUs alone.
	PinNone Pinning = ""
	// PinDomains: it keeps to NVLink domains, in the order of topo_rank, and
	// each pool is made to look like one (NeMo-RL 0.7 and later).
	PinDomains Pinning = "nvlink-domains"
	// PinGroups: its placement groups have names, and those that begin with a key
	// of Pins get the resource of that role's pool, by a shim in Python.
	PinGroups Pinning = "placement-groups"
	// PinResources: its own settings name the resources of the pools.
	PinResources Pinning = "resources"
)

var pinPrefix = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

var healthPath = regexp.MustCompile(`^/[A-Za-z0-9/._-]*$`)

// checkLaunch holds what launchers need against the rest of the manifest.
func (m *Manifest) checkLaunch(bad func(key, format string, args ...any) error) error {
	if s := m.Server; s != nil {
		switch {
		case !slices.Contains(slices.Concat(m.Roles, m.OptionalRoles), s.Role) || s.Role == m.Driver:
			return bad("server.role", "%q is none of the roles that serve the driver", s.Role)
		case m.Launcher == Ray || m.Launcher == MPI:
			return bad("server", "the launcher %s starts no servers", m.Launcher)
		case !healthPath.MatchString(s.Health):
			return bad("server.health", "%q is no path such as /health", s.Health)
		}
	}
	if known := []Pinning{PinDomains, PinGroups, PinResources}; m.Pinning != PinNone && !slices.Contains(known, m.Pinning) {
		return bad("pinning", "%q is not known; there are %s", m.Pinning, joined(known))
	}
	if (m.Pinning == PinGroups) != (len(m.Pins) > 0) {
		return bad("pins", "belongs to pinning = %q, and it to pins", PinGroups)
	}
	for prefix, role := range m.Pins {
		if !pinPrefix.MatchString(prefix) || !roleName.MatchString(role) {
			return bad("pins."+prefix, "expected the beginning of a placement group's name, and a role")
		}
	}
	if m.Pinning != PinNone && m.Launcher != Ray {
		return bad("pinning", "only the launcher ray pins roles")
	}
	if m.Launcher == Ray {
		for _, role := range slices.Concat(m.Roles, m.OptionalRoles) {
			if !roleName.MatchString(rayRole(role)) {
				return bad("roles", "%q is too long for a name of Ray's nodes, %s", role, rayRole(role))
			}
		}
	}
	return nil
}

// launchText is all shell text that the recipe's roles are made of.
func (m *Manifest) launchText() ([]byte, error) {
	names := []string{string(m.Launcher)}
	if m.Launcher == Ray {
		names = rayTexts[:]
	}
	if m.Pinning == PinGroups {
		names = append(slices.Clone(names), "pins.py")
	}
	if m.Server != nil {
		names = append(names, "gate", "server")
	}
	var all []byte
	for _, name := range names {
		text, err := launcherText(name)
		if err != nil {
			return nil, err
		}
		all = append(all, text...)
	}
	return all, nil
}

// gate is what the driver does before it starts: it waits for the servers.
// After it TP_SERVERS has their URLs; TP_SERVER_HOST, TP_SERVER_PORT and
// TP_SERVER_GROUP_PORT are of the first.
func (c *composer) gate(params map[string]string) (string, error) {
	s := c.recipe.Server
	if s == nil || !slices.Contains(c.roles, s.Role) {
		return "", nil
	}
	text, err := launcherText("gate")
	return c.serverVars(params) + text, err
}

func (c *composer) serverVars(params map[string]string) string {
	s := c.recipe.Server
	return fmt.Sprintf("tp_server=%s tp_health=%s tp_timeout=%s tp_server_port=%s\nread -ra tp_server_addrs <<<%s\n",
		shell.Quote(s.Role), shell.Quote(s.Health), shell.Quote(params["start_timeout"]), roleVar(s.Role, "PORT"), roleVar(s.Role, "ADDRS"))
}

// server is the role that the driver waits for.
func (c *composer) server(params map[string]string) (spec.Role, error) {
	s := c.recipe.Server
	r := spec.Role{Name: s.Role, Needs: needs[Plain]}
	words, err := c.words(s.Role, s.Command)
	if err != nil {
		return r, err
	}
	command := strings.Join(words, " ")
	if len(s.Command) == 0 {
		file, err := c.script(s.Role, s.Role+".sh")
		if err != nil {
			return r, err
		}
		command, r.Files = "bash "+shell.Quote("./"+file), []string{c.exp.Rel + "/" + file}
	} else {
		r.Needs = append([]string{s.Command[0]}, r.Needs...)
	}
	single := ""
	if s.Single {
		single = "1"
	}
	text, err := launcherText("server")
	r.Body = fmt.Sprintf("tp_single=%s tp_server_port=%s\nread -ra tp_server_addrs <<<%s\n%sexec %s\n",
		shell.Quote(single), roleVar(s.Role, "PORT"), roleVar(s.Role, "ADDRS"), text, command)
	return r, err
}

// roleVar is a variable of a role's place, in double quotes.
func roleVar(role, name string) string {
	return fmt.Sprintf(`"$TP_ROLE_%s_%s"`, script.VarName(role), name)
}
