package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tuneplane/tp/internal/fault"
)

type completionCmd struct {
	Shell string `arg:"" optional:"" default:"bash" help:"bash, zsh or fish."`
}

// completions are the scripts; all of them ask tp itself, through the hidden
// variable TP_COMPLETE, which words may come next.
var completions = map[string]string{
	"bash": `# eval "$(tp completion bash)"
_tp() {
  local IFS=$'\n'
  COMPREPLY=($(TP_COMPLETE=$COMP_CWORD tp "${COMP_WORDS[@]:1}" 2>/dev/null))
}
complete -o default -F _tp tp
`,
	"zsh": `# eval "$(tp completion zsh)"
_tp() {
  local -a words_
  words_=(${(f)"$(TP_COMPLETE=$((CURRENT - 1)) tp "${words[@]:1}" 2>/dev/null)"})
  compadd -Q -a words_ || _files
}
compdef _tp tp
`,
	"fish": `# tp completion fish | source
complete -c tp -f -a '(set -l w (commandline -opc) (commandline -ct); env TP_COMPLETE=(math (count $w) - 1) tp $w[2..-1] 2>/dev/null)'
`,
}

func (c *completionCmd) Run(a *app) error {
	if err := a.textOnly("tp completion"); err != nil {
		return err
	}
	text, ok := completions[c.Shell]
	if !ok {
		return fault.New(fault.Usage, "no completion for %q; there are bash, zsh and fish", c.Shell).WithHint("tp completion bash")
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

// complete answers a completion script: the words that may follow the first n
// of the line. Experiments are read from the lab; no cluster is asked.
func complete(a *app, root *kong.Node, words []string) {
	node, last := root, ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	for _, w := range words {
		for _, child := range node.Children {
			if child.Name == w {
				node = child
				break
			}
		}
	}
	offer := func(word string) {
		if strings.HasPrefix(word, last) {
			fmt.Fprintln(a.Out, word)
		}
	}
	if strings.HasPrefix(last, "-") {
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				offer("--" + flag.Name)
			}
		}
		return
	}
	for _, child := range node.Children {
		if !child.Hidden {
			offer(child.Name)
		}
	}
	switch node.Name {
	case "submit", "plan", "render", "validate":
		if l, err := a.lab(); err == nil {
			list, _ := l.Experiments()
			for _, e := range list {
				offer(e.Name)
			}
		}
	case "methods":
		l, _ := a.lab()
		if catalog, err := a.catalog(l); err == nil {
			for _, name := range catalog.Names() {
				offer(name)
			}
		}
	}
}
