package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/slurm"
)

// Bounds of what a job may leave: its files are foreign input.
const (
	maxMark  = 64 << 10 // bytes of an end marker
	maxMarks = 20000    // markers of a run: an array of 10,000 tasks, twice
)

// End is what the job's script wrote when it ended, in ends/*.json. It is the
// only witness where accounting is off.
type End struct {
	Attempt int
	Restart int // SLURM_RESTART_COUNT
	JobID   slurm.JobID
	Exit    int
	State   State  // SUCCEEDED, FAILED, TIMEOUT, PREEMPTED or CANCELLED; UNKNOWN when unreadable
	Role    string // which role ended the run
	Pool    string
	Node    string
	Message string // foreign text, at most 4 KiB
	Time    time.Time
	File    string // base name
}

// endJSON takes numbers with or without quotes: bash's printf writes them.
type endJSON struct {
	Attempt json.Number `json:"attempt"`
	Restart json.Number `json:"restart"`
	JobID   json.Number `json:"job_id"`
	Exit    json.Number `json:"exit"`
	State   State       `json:"state"`
	Role    string      `json:"role"`
	Pool    string      `json:"pool"`
	Node    string      `json:"node"`
	Message string      `json:"message"`
	Time    json.Number `json:"time"` // seconds since 1970
}

// Ends reads the end markers of a run, oldest attempt first. A marker that
// cannot be read is an End in state UNKNOWN with attempt and restart from its
// name, which is <attempt>.<restart>.json and may have further parts between.
func Ends(dir string) ([]End, error) {
	names, err := marks(filepath.Join(dir, "ends"), ".json")
	if err != nil {
		return nil, err
	}
	var ends []End
	for _, name := range names {
		end, ok := readEnd(filepath.Join(dir, "ends", name))
		if ok {
			ends = append(ends, end)
		}
	}
	slices.SortStableFunc(ends, func(a, b End) int {
		return cmp.Or(a.Attempt-b.Attempt, a.Restart-b.Restart, strings.Compare(a.File, b.File))
	})
	return ends, nil
}

func readEnd(path string) (End, bool) {
	e := End{File: filepath.Base(path), State: Unknown}
	parts := strings.Split(e.File, ".")
	e.Attempt = atoi(json.Number(parts[0]))
	if len(parts) > 2 {
		e.Restart = atoi(json.Number(parts[1]))
	}
	data, err := durable.Read(path, maxMark)
	if errors.Is(err, fs.ErrNotExist) {
		return End{}, false
	}
	var j endJSON
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil {
		e.Message = "unreadable end marker: " + err.Error()
		return e, true
	}
	if j.Attempt != "" {
		e.Attempt = atoi(j.Attempt)
	}
	if j.Restart != "" {
		e.Restart = atoi(j.Restart)
	}
	e.JobID, e.Exit = jobID(j.JobID), atoi(j.Exit)
	e.Role, e.Pool, e.Node, e.Message = j.Role, j.Pool, j.Node, cut(j.Message, 4<<10)
	if j.State.Final() {
		e.State = j.State
	}
	if t, err := j.Time.Float64(); err == nil && t > 0 && t < 1<<40 {
		sec, frac := math.Modf(t)
		e.Time = time.Unix(int64(sec), int64(frac*1e9)).UTC()
	}
	return e, true
}

// Claim says which job holds an attempt: claims/<attempt>[.<array task>].
type Claim struct {
	Attempt int
	Task    int         // array task, -1 for none
	JobID   slurm.JobID // 0 while the script is writing it
}

// Claims reads the claims of a run in order.
func Claims(dir string) ([]Claim, error) {
	names, err := marks(filepath.Join(dir, "claims"), "")
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for _, name := range names {
		attempt, task, isTask := strings.Cut(name, ".")
		c := Claim{Attempt: atoi(json.Number(attempt)), Task: -1}
		if isTask {
			if c.Task, err = strconv.Atoi(task); err != nil {
				continue
			}
		}
		data, err := durable.Read(filepath.Join(dir, "claims", name), maxMark)
		if c.Attempt < 1 || err != nil {
			continue
		}
		word, _, _ := strings.Cut(string(data), "\n")
		c.JobID = jobID(json.Number(strings.TrimSpace(word)))
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Or(a.Attempt-b.Attempt, a.Task-b.Task) })
	return claims, nil
}

// marks lists the visible names in a directory that may be missing.
func marks(dir, suffix string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxMarks)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasPrefix(n, ".") || !strings.HasSuffix(n, suffix)
	})
	slices.Sort(names)
	return names, nil
}

// atoi is 0 for what is no number of 32 bits.
func atoi(n json.Number) int {
	i, err := strconv.ParseInt(string(n), 10, 32)
	if err != nil {
		return 0
	}
	return int(i)
}

func jobID(n json.Number) slurm.JobID {
	id, err := strconv.ParseUint(string(n), 10, 32)
	if err != nil {
		return 0
	}
	return slurm.JobID(id)
}

// cut bounds a text without leaving half a character.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "")
}
