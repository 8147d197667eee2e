// Command tp takes a training experiment from a git tree to a running Slurm
// job. Every command is one file here: flags, load, resolve, show, act.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/version"
)

type cli struct {
	Dir       string           `short:"C" placeholder:"DIR" help:"Start looking for the lab here instead of the current directory."`
	Fleet     string           `placeholder:"NAME" help:"Cluster to use; the site file names them."`
	Transport string           `env:"TP_TRANSPORT" placeholder:"WAY" help:"Way to the cluster: url, socket, child or cli, or several in the order to try."`
	TokenFile string           `placeholder:"FILE" help:"Token of slurmrestd, instead of the site file's."`
	JSON      bool             `help:"One JSON document on stdout, errors too."`
	TrustLab  bool             `help:"Accept a lab whose marker file belongs to somebody else, this once."`
	Version   kong.VersionFlag `help:"Print the version and exit."`

	Submit   submitCmd   `cmd:"" group:"run" help:"Show a plan, ask, and queue it once."`
	Plan     planCmd     `cmd:"" group:"run" help:"Show what would run and keep it for tp submit --plan."`
	Render   renderCmd   `cmd:"" group:"run" help:"Stage a run and print its batch script, which sbatch starts as it is."`
	Lint     lintCmd     `cmd:"" group:"run" help:"Check any batch script for what sbatch ignores, cuts short or refuses."`
	Status   statusCmd   `cmd:"" group:"run" help:"Show the runs that have not ended and the free GPUs."`
	Job      jobCmd      `cmd:"" group:"run" help:"List, watch and cancel runs."`
	Init     initCmd     `cmd:"" group:"lab" help:"Make a lab."`
	New      newCmd      `cmd:"" group:"lab" help:"Make an experiment from a recipe or another experiment."`
	Ls       lsCmd       `cmd:"" group:"lab" help:"List the experiments of the lab."`
	Methods  methodsCmd  `cmd:"" group:"lab" help:"List the recipes, or show one with its parameters."`
	Validate validateCmd `cmd:"" group:"lab" help:"Check an experiment without asking any cluster."`
	Recipe   recipeCmd   `cmd:"" group:"lab" help:"Show how recipe locks stand to the catalogue, and bring them up to date."`
	FleetCmd fleetCmd    `cmd:"" name:"fleet" group:"site" help:"Show clusters, series, partitions and free GPUs."`
	Site     siteCmd     `cmd:"" group:"site" help:"Write or check the site file."`
	Doctor   doctorCmd   `cmd:"" group:"site" help:"Check everything tp needs here and say what to do."`
	Config   configCmd   `cmd:"" group:"site" help:"Show every setting and where it comes from."`
	Tick     tickCmd     `cmd:"" group:"site" help:"Bring the record up to date; for cron."`
	Reindex  reindexCmd  `cmd:"" group:"site" help:"Rebuild the index from the run directories."`

	Completion completionCmd `cmd:"" group:"site" help:"Print a shell completion script."`
	VersionCmd versionCmd    `cmd:"" name:"version" group:"site" help:"Print the version."`
}

func main() {
	if os.Getenv("PATH") == "" { // cron and setsid may bring none, and git and Slurm's commands are looked for there
		os.Setenv("PATH", usualPath)
	}
	log.SetOutput(io.Discard) // net/http would speak there of a server's bad manners
	os.Exit(int(Main(os.Args[1:], ui.Standard())))
}

// usualPath is where programs are when nobody says: cron's own, and where
// Slurm is installed beside the distribution's packages.
const usualPath = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin"

// jwt is SLURM_JWT, taken out of the environment before anything else: a token
// is no child's business, git's filters included.
var jwt = func() string {
	token := os.Getenv("SLURM_JWT")
	os.Unsetenv("SLURM_JWT")
	return token
}()

// Main runs one command and returns the process's exit code. It may be called
// again and again in one process, as the tests do.
func Main(args []string, streams *ui.Streams) fault.Code {
	var c cli
	out := &result{Writer: streams.Out}
	streams.Out = out
	defer func() { streams.Out = out.Writer }()
	exited := fault.Code(-1)
	parser := newParser(&c, streams, func(code int) { exited = fault.Code(code); panic(exitNow{}) })
	if len(args) == 0 {
		args = []string{"--help"}
	}
	a := &app{Streams: streams, cli: &c, args: args}
	if n, err := strconv.Atoi(os.Getenv("TP_COMPLETE")); err == nil {
		complete(a, parser.Model.Node, args[:min(max(n, 0), len(args))])
		return fault.OK
	}
	for _, arg := range args {
		if !utf8.ValidString(arg) { // kong would replace the bytes in silence
			return a.report(fault.New(fault.Usage, "argument %q is no valid UTF-8", arg))
		}
	}
	if err := noneEmpty(args); err != nil {
		c.JSON = wantsJSON(args)
		return a.report(err)
	}
	kctx, err := parse(parser, args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		c.JSON = c.JSON || wantsJSON(args) // kong has not set it when the line cannot be read
		return a.report(usage(err))
	}
	if _, err := transports(c.Transport); err != nil { // not only where a cluster is asked
		return a.report(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kctx.BindTo(ctx, (*context.Context)(nil))
	err = kctx.Run(a)
	if cerr := a.close(); err == nil {
		err = cerr
	}
	if err == nil && out.err != nil {
		err = fault.New(fault.Internal, "the result could not be written: %w", out.err)
	}
	if err != nil && ctx.Err() != nil {
		stopped := fault.New(fault.Interrupted, "interrupted")
		var f *fault.Error
		if errors.As(err, &f) { // a submission in doubt still needs to be settled
			stopped.Msg, stopped.Hint = "interrupted: "+f.Msg, f.Hint
		}
		err = stopped
	}
	return a.report(err)
}

// result is stdout; it remembers that something could not be written, for
// tables and lines do not ask.
type result struct {
	io.Writer
	err error
}

func (r *result) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// newParser is the command line; docs/reference.md is written from it.
func newParser(c *cli, streams *ui.Streams, exit func(int)) *kong.Kong {
	parser, err := kong.New(c,
		kong.Name("tp"),
		kong.Description("From a git tree to a running Slurm job: a GPU pool per role, shown before it runs, queued once."),
		kong.Vars{"version": "tp " + version.Version},
		kong.Writers(streams.Out, streams.Err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups([]kong.Group{{Key: "run", Title: "Runs"}, {Key: "lab", Title: "Lab"}, {Key: "site", Title: "Site"}, {Key: "slurm", Title: "Slurm, in the words of sbatch(1)"}}),
	)
	if err != nil {
		panic(err) // the struct above is wrong
	}
	return parser
}

// noneEmpty refuses empty arguments. They come from scripts whose variable is
// not set, and taken for left out they mean something else: the newest run is
// cancelled, a job is queued under no key.
func noneEmpty(args []string) error {
	for i, arg := range args {
		flag, isFlag := strings.CutSuffix(arg, "=")
		isFlag = isFlag && strings.HasPrefix(arg, "--") && !strings.Contains(flag, "=")
		switch {
		case isFlag:
			return fault.New(fault.Usage, "%s has an empty value", flag)
		case arg == "" && i > 0 && strings.HasPrefix(args[i-1], "-"):
			return fault.New(fault.Usage, "the argument after %s is empty", args[i-1])
		case arg == "":
			return fault.New(fault.Usage, "argument %d is empty", i+1)
		}
	}
	return nil
}

type exitNow struct{}

// parse turns kong's exit after --help into a return.
func parse(parser *kong.Kong, args []string) (kctx *kong.Context, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exitNow); !ok {
				panic(r)
			}
		}
	}()
	return parser.Parse(args)
}

func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

func usage(err error) error {
	hint := "tp --help"
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil && p.Context.Command() != "" {
		hint = "tp"
		for _, word := range strings.Fields(p.Context.Command()) {
			if strings.HasPrefix(word, "<") {
				break
			}
			hint += " " + word
		}
		hint += " --help"
	}
	found := fault.New(fault.Usage, "%w", err)
	found.Msg = nearOnly(found.Msg)
	return found.WithHint("%s", hint)
}

// guesses are what kong offers for a word that it does not know: it takes
// whatever is no longer than the word itself.
var guesses = regexp.MustCompile(`^(.*?)(\S+), did you mean (?:one of )?(".*")\?$`)

// nearOnly keeps the guess that may have been meant. To a single letter every
// other one is near.
func nearOnly(msg string) string {
	m := guesses.FindStringSubmatch(msg)
	if m == nil {
		return msg
	}
	var words []string
	for word := range strings.SplitSeq(m[3], ", ") {
		words = append(words, strings.Trim(word, `"`))
	}
	near := fault.Nearest(m[2], words)
	if near == "" || len(strings.Trim(m[2], "-")) == 1 {
		return m[1] + m[2]
	}
	return fmt.Sprintf("%s%s, did you mean %q?", m[1], m[2], near)
}

// report prints an error in the voice of the house and gives its exit code.
func (a *app) report(err error) fault.Code {
	if err == nil {
		return fault.OK
	}
	code := fault.CodeOf(err)
	var f *fault.Error
	hint := ""
	if errors.As(err, &f) {
		hint = f.Hint
	}
	if hint == "" {
		hint = a.diskAdvice(err)
	}
	if a.cli.JSON && !a.printed {
		doc := struct {
			Error string `json:"error"`
			Gate  string `json:"gate,omitempty"`
			Hint  string `json:"hint,omitempty"`
			Code  int    `json:"exit_code"`
		}{Error: err.Error(), Hint: hint, Code: int(code)}
		if f != nil {
			doc.Gate = f.Gate
		}
		json.NewEncoder(a.Out).Encode(doc)
	}
	fmt.Fprintf(a.Err, "tp: %s\n", ui.CleanLines(err.Error()))
	if hint != "" {
		fmt.Fprintf(a.Err, "tp: try: %s\n", ui.CleanLines(hint))
	}
	return code
}

// textOnly refuses --json where the result is a text for another program.
func (a *app) textOnly(command string) error {
	if !a.cli.JSON {
		return nil
	}
	return fault.New(fault.Usage, "%s prints text as it is and has no JSON form", command).WithHint("%s without --json", command)
}

// printJSON writes the command's one document. An empty list is [], not null.
// An error after it is told by stderr and exit code.
func (a *app) printJSON(v any) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	a.printed = true
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
