package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

func TestLint(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --partition=gpu\n"
	for _, c := range []struct{ name, text, want string }{ // want: LINE:COLUMN CODE …
		{"clean", head + "#SBATCH --job-name=\"a #1\"  # train pool · job.toml:7\n#SBATCH -t 10\n#SBATCH --nodes 2 --exclusive\n\n# note\n\necho hi\n", ""},
		{"late", head + "\n  \n# c\necho hi\n\n#SBATCH --time=1\n", "8:1 late"},
		{"a colon is a command", head + ":\n#SBATCH --time=1\n", "4:1 late"},
		{"a script inside a script", head + "cat <<'EOF' >job\n#SBATCH --time=1\nEOF\ncat <<-X\n\tTOKEN=1\n\tX\necho <<<EOF\n#SBATCH -n1\n", "10:1 late"},
		{"CRLF", "#!/bin/bash\r\n#SBATCH --partition=gpu\r\n", "1:12 crlf"},
		{"no shebang", "#SBATCH --partition=gpu\n", "1:1 shebang"},
		{"empty", "", "1:1 shebang"},
		{"BOM", "\ufeff" + head, "1:1 bom"},
		{"too long", head + strings.Repeat("#", slurm.MaxScript), "1:1 size"},
		{"NUL", head + "echo é\x00\n", "3:7 nul"},
		{"nothing after hetjob", head + "#SBATCH hetjob\n", "3:1 hetjob"},
		{"nothing before hetjob", "#!/bin/bash\n#SBATCH hetjob\n#SBATCH -p a\n", "2:9 hetjob"},
		{"packjob", head + "#SBATCH packjob\n#SBATCH -p b\n", "3:9 packjob"},
		{"# in a value", head + "#SBATCH --job-name=a#b\n", "3:21 hash"},
		{"# behind a blank", head + "#SBATCH --comment=a #b\n", "3:21 hash"},
		{"a blank in a value", head + "#SBATCH --job-name=a b\n", "3:22 blank"},
		{"blanks around =", head + "#SBATCH --job-name = a\n", "3:20 blank"},
		{"no option at all", head + "#SBATCH gpu\n", "3:9 blank"},
		{"an open quote", head + "#SBATCH --job-name=\"a\n", "3:20 quote"},
		{"an empty directive", head + "#SBATCH\n", "3:1 empty"},
		{"export twice", head + "#SBATCH --export=A=1\n#SBATCH --export=B=2\n", "4:9 export"},
		{"export in two components", head + "#SBATCH --export=A=1\n#SBATCH hetjob\n#SBATCH --export=B=2\n", ""},
		{"array with hetjob", head + "#SBATCH -a 0-1\n#SBATCH hetjob\n#SBATCH -p b\n", "3:1 array"},
		{"licences of a later component", head + "#SBATCH hetjob\n#SBATCH --licenses=matlab\n", "4:9 licenses"},
		{"# SBATCH", head + "# SBATCH --time=1\n", "3:1 typo"},
		{"#sbatch", head + "#sbatch --time=1\n", "3:1 typo"},
		{"leading blanks", head + "  #SBATCH --time=1\n", "3:3 typo"},
		{"#SBACTH", head + "#SBACTH --time=1\n", "3:1 typo"},
		{"switched off", head + "##SBATCH --time=1\n# SBATCH lines are read by sbatch\n", ""},
		{"a tab and no blank", head + "#SBATCH\t--time=1\n#SBATCH--nodes=1\n", ""},
		{"set -x beside a secret", head + "set -euxo pipefail\nexport WANDB_API_KEY=$(cat key)\necho $HF_TOKEN\n", "4:8 trace"},
		{"a secret is read", head + "set -o xtrace\ncurl -H \"Bearer ${HF_TOKEN}\"\n", "4:19 trace"},
		{"set -x of the first line", "#!/bin/bash -x\nTOKEN=1\n", "2:1 trace"},
		{"set -x is off again", head + "set -x\nmake\nset +x\nTOKEN=1 run\n", ""},
		{"a word is no secret", head + "set -x\necho token of the secret keys\n", ""},
		{"129 components", head + strings.Repeat("#SBATCH hetjob\n#SBATCH -n1\n", 128), "257:1 components"},
		{"two findings, by place", head + "# SBATCH -n1\necho\n#SBATCH -n2\n", "3:1 typo 5:1 late"},
	} {
		var got []string
		for _, f := range Lint([]byte(c.text)) {
			got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Code))
			if f.Found == "" || f.Fix == "" {
				t.Errorf("%s: %+v says nothing", c.name, f)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, wanted %q", c.name, got, c.want)
		}
	}
}

// What tp writes has nothing to complain of, with and without its origins.
func TestOwnScriptsAreClean(t *testing.T) {
	p := twoPools()
	text, err := Render(p)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a long reason ", 10) + "\x1b[31m\\\nred"
	explained, err := Explain(text, p.Request, func(component int, o slurm.Option) string {
		if o.Name == "comment" {
			return long
		}
		return fmt.Sprintf("component %d, %s", component, o.Field)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{text, explained} {
		if found := Lint([]byte(text)); len(found) > 0 {
			t.Errorf("%+v", found)
		}
	}
	if strings.ContainsAny(explained[:strings.Index(explained, "# ----")], "\x1b\\") && !strings.Contains(text[:strings.Index(text, "# ----")], "\\") {
		t.Error("an origin brought control characters or a backslash")
	}
	// Without the comments it is the same script.
	var plain []string
	for line := range strings.SplitSeq(explained, "\n") {
		if strings.HasPrefix(line, "# ") && strings.HasSuffix(line, ":") && strings.Contains(line, "a long reason") {
			continue
		}
		if at := strings.LastIndex(line, "# component "); strings.HasPrefix(line, "#SBATCH") && at > 0 {
			line = strings.TrimRight(line[:at], " ")
		}
		plain = append(plain, line)
	}
	if strings.Join(plain, "\n") != text {
		for i, line := range strings.Split(text, "\n") {
			if i >= len(plain) || plain[i] != line {
				t.Fatalf("line %d is more than a comment away: %q, %q", i+1, line, plain[i])
			}
		}
	}
	if _, err := Explain("#!/bin/bash\n", p.Request, func(int, slurm.Option) string { return "" }); err == nil {
		t.Error("another script was explained")
	}
}

func FuzzLint(f *testing.F) {
	f.Add("#!/bin/bash\n#SBATCH -a 1 #x\n#SBATCH hetjob\nset -x; A_TOKEN=1 <<'X'\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		for _, found := range Lint([]byte(text)) {
			if found.Line < 1 || found.Line > lines || found.Column < 1 {
				t.Fatalf("%+v of %d lines", found, lines)
			}
		}
	})
}
