package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
)

const containerRecipe = "launcher = \"plain\"\nconfig = \"none\"\nroles = [\"train\", \"rollout\"]"

// insideDriver says what it sees in its container.
const insideDriver = `import json, os
role, rank = os.environ["TP_ROLE"], os.environ["TP_NODE_RANK"]
name = f"{os.environ['TP_OUT_DIR']}/{role}.{rank}"
with open(name + ".tmp", "w") as f:
    json.dump({"Env": dict(os.environ), "Dir": os.getcwd(), "Node": os.environ["SLURMD_NODENAME"]}, f)
os.rename(name + ".tmp", name)
`

const insideServer = "python3 - <<'PY'\n" + insideDriver + "PY\nexec sleep 300\n"

type inside struct {
	Env       map[string]string
	Dir, Node string
}

// contained runs two roles on two pools of one component in an image.
func (w *world) contained(how spec.Containers, image string, change func(*launch)) (runDir, job string) {
	w.Helper()
	if r := w.slurm("python3", "--version"); r.code != 0 {
		w.Skip("no python3 in this world: " + lastLine(r.err))
	}
	tools := filepath.Join(w.dir, fmt.Sprintf("apptainer%d", time.Now().UnixNano()))
	w.ok(os.CopyFS(tools, os.DirFS("testdata/apptainer")))
	w.mkdir(filepath.Join(w.dir, "data"))
	l := launch{
		recipe: containerRecipe, files: map[string]string{"train.py": insideDriver, "rollout.sh": insideServer},
		profiles: []string{"train=h200:1", "rollout=h200:1"}, path: tools + "/bin", image: image,
		env:      []string{"FORCED=it's \"$(id)\" the job's", "FAKE_IMAGE_ENV=OF_IMAGE=image"},
		mounts:   []string{filepath.Join(w.dir, "data") + ":/data:ro"},
		software: site.Software{Container: how, Origin: "the site file"},
	}
	if change != nil {
		change(&l)
	}
	return w.start(l)
}

// Apptainer starts both roles of two pools on two nodes with flags that it
// knows, on binds that are there. What the job was given reaches the training,
// whatever the image says, and a step that runs in a container ends like another.
func TestApptainer(t *testing.T) {
	each(t, func(w *world) {
		image := filepath.Join(w.dir, "train.sif")
		w.ok(os.WriteFile(image, []byte("SIF"), 0o644))
		dir, job := w.contained(spec.Apptainer, image, nil)
		for name, node := range map[string]string{"train.0": "h200-1", "rollout.0": "h200-2"} {
			in := into[inside](w, dir, job, "out/"+name)
			role, rank, _ := strings.Cut(name, ".")
			for key, want := range map[string]string{
				"TP_ROLE": role, "TP_NODE_RANK": rank, "TP_RUN_DIR": dir, "FORCED": "it's \"$(id)\" the job's", "OF_IMAGE": "image",
				"APPTAINER_CONTAINER": image, "TP_ATTEMPT": "1",
			} {
				if in.Env[key] != want {
					w.Errorf("%s: %s is %q, wanted %q", name, key, in.Env[key], want)
				}
			}
			if in.Node != node || in.Dir != in.Env["TP_EXP_DIR"] || in.Env["TP_ROLE_ROLLOUT_NODES"] == "" || in.Env["CUDA_VISIBLE_DEVICES"] == "" {
				w.Errorf("%s runs on %s in %s: %v", name, in.Node, in.Dir, in.Env)
			}
			args := w.read(dir, "out", "apptainer."+name+".args")
			want := "--nv\n--no-home\n--bind=" + w.dir + "/data:/data:ro\n--bind=" + dir + ":" + dir + "\nimage=" + image + "\n"
			if args != want {
				w.Errorf("%s: apptainer got %q, wanted %q", name, args, want)
			}
		}
		w.mustEnd(dir, job, "SUCCEEDED", "role train ended well")
	})
}

// An image in a registry by tag and digest: Apptainer takes the digest alone,
// and its credentials are a file.
func TestApptainerFromARegistry(t *testing.T) {
	each(t, func(w *world) {
		const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		auth := filepath.Join(w.dir, "auth.json")
		w.ok(os.WriteFile(auth, []byte("{}"), 0o644))
		i, err := spec.ParseImage("registry.example.org:5000/ml/train:1@" + digest)
		w.ok(err)
		dir, job := w.contained(spec.Apptainer, "", func(l *launch) {
			l.software.Runtimes = []site.Runtime{{Framework: "test", Runtime: spec.Runtime{Name: "test-1", Container: spec.Apptainer, Image: i, Credentials: auth, GPU: "amd", Home: true}}}
		})
		w.mustEnd(dir, job, "SUCCEEDED")
		args := w.read(dir, "out", "apptainer.train.0.args")
		if !strings.HasPrefix(args, "--rocm\n--authfile="+auth+"\n--bind=") || !strings.HasSuffix(args, "image=docker://registry.example.org:5000/ml/train@"+digest+"\n") {
			w.Errorf("apptainer got %q", args)
		}
	})
}

// What goes wrong with a container is said by the role and its node.
func TestApptainerFails(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.contained(spec.Apptainer, "/no/such/image.sif", nil)
		w.mustEnd(dir, job, "FAILED", "failed with exit code 66", "the image /no/such/image.sif is not on h")
		dir, job = w.contained(spec.Apptainer, "registry.example.org/a:1", func(l *launch) { l.path = "/usr/bin" })
		w.mustEnd(dir, job, "FAILED", "failed with exit code 127", "apptainer is not on the PATH of h")
	})
}

// A cluster without pyxis, or without oci.conf: a plain word before any role
// starts, and neither srun's "unrecognized option" nor a run outside.
func TestClusterWithoutContainers(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.contained(spec.Pyxis, "registry.example.org/a:1", nil)
		w.mustEnd(dir, job, "FAILED", "has no --container-image: Slurm's plugin pyxis is not there")
		dir, job = w.contained(spec.OCI, w.dir+"/bundle", func(l *launch) {
			l.mounts, l.software.Mounts = nil, []spec.Mount{{Source: w.dir, Target: w.dir, Origin: "the site file"}}
		})
		w.mustEnd(dir, job, "FAILED", "there is no oci.conf beside")
		if w.read(dir, "out", "train.0") != "" {
			w.Error("the role ran outside its container")
		}
	})
}

// With pyxis every role's step, and no other, has the plugin's options; the
// plugin itself is a stand-in, and the step runs on the node.
func TestPyxis(t *testing.T) {
	each(t, func(w *world) {
		const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		tools := filepath.Join(w.dir, "pyxis")
		w.ok(os.CopyFS(tools, os.DirFS("testdata/pyxis")))
		dir, job := w.contained(spec.Pyxis, "registry.example.org:5000/ml/train:1@"+digest, func(l *launch) { l.path = tools + "/bin" })
		in := into[inside](w, dir, job, "out/train.0")
		if in.Env["TP_RUN_DIR"] != dir || in.Dir != in.Env["TP_EXP_DIR"] {
			w.Errorf("the role ran in %s: %v", in.Dir, in.Env)
		}
		w.mustEnd(dir, job, "SUCCEEDED", "role train ended well")
		want := "--container-image=registry.example.org:5000#ml/train@" + digest + "\n--container-mounts=" + w.dir + "/data:/data:ro," + dir + ":" + dir +
			"\n--container-workdir=" + in.Dir + "\n--no-container-mount-home\n--no-container-entrypoint\n--container-env=FAKE_IMAGE_ENV,FORCED\n"
		for _, step := range []string{"train", "rollout"} {
			if got := w.read(dir, "out", "pyxis."+step); got != want {
				w.Errorf("srun of %s got %q, wanted %q", step, got, want)
			}
		}
		if w.read(dir, "out", "pyxis.tp-pool") != "" {
			w.Error("the pool's own step is in a container")
		}
	})
}
