package vcjob

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// A job that nobody may queue says what is wrong with it, not that it waits for quota; and one that
// gives its quota back asks for none.
func TestAJobThatCannotBeQueuedSaysWhy(t *testing.T) {
	got := plan(jobs.Seen[*volcano.Job]{Job: twoTasks().is(volcano.Pending).Job,
		Admission: jobs.Admission{Grant: jobs.Waiting}, Mistake: "the topology is hard", Now: now})
	if s := state(got); s != "Pending InvalidJob: the topology is hard" {
		t.Errorf("state %q", s)
	}
	if !describe(twoTasks().is(volcano.Pending).because(admittedAnewReason).Job, jobs.Facts{}).Paused {
		t.Error("a job that gives its quota back asks for it")
	}
}

func TestMistakesAreReported(t *testing.T) {
	for want, job := range map[string]jobBuilder{
		"form a cycle, through task a": newJob().with("a", 1, dependsOn("", "b")).with("b", 1,
			dependsOn("", "a")),
		"spec.networkTopology is hard": func() jobBuilder {
			j := twoTasks()
			j.Spec.NetworkTopology = &volcano.NetworkTopologySpec{}
			return j
		}(),
		"of task worker must be numbers":       newJob().with("worker", 2, between("3", "")),
		"must be numbers up to 10000 of which": newJob().with("worker", 2, between("1", "1")),
		"not below the first nor above":        newJob().with("worker", 2, between("x", "4")),
		"and, if it is there,":                 newJob().with("worker", 2, between("", "4")),
		"numbers up to 10000":                  newJob().with("worker", 2, between("1", "many")),
		"one task of a job may have": newJob().with("a", 2, between("1", "")).with("b", 2,
			between("1", "")),
		"spec.plugins.svc: the name of the Job must be a DNS label": func() jobBuilder {
			j := twoTasks().plugin("svc")
			j.Name = "my.job"
			return j
		}(),
		"unable to find job plugin: horovod": twoTasks().plugin("horovod"),
		`"--speed" is not an argument; the arguments are --disable-network-policy, --inject-hosts-env, --publish-not-ready-addresses`: twoTasks().plugin(
			"svc", "--speed=3"),
		"port must be a port, from 1 to 65535": twoTasks().plugin("pytorch", "--port=0"),
		"wait-master-image must not be empty": twoTasks().plugin("pytorch", "--wait-master-enabled",
			"--wait-master-image="),
		"ssh-key-file-path must not be empty":                  twoTasks().plugin("ssh", "--ssh-key-file-path="),
		"spec.plugins.ray: port and dashboardPort must differ": newJob().with("head", 1).plugin("ray", "--port=8265"),
		"the plugin has none":                                  twoTasks().plugin("env", "--x"),
		"spec.plugins.mpi: there is no task master, which plays the master: name the one that does with --master": twoTasks().
			plugin("mpi"),
		"spec.plugins.mpi: there is no task crew, which plays the worker": twoTasks().plugin("mpi", "--master=ps",
			"--worker=crew"),
		"spec.plugins.ray: there is no task head, which plays the head": twoTasks().plugin("ray"),
		"spec.plugins.tensorflow: the host names of 9002 pods do not fit into the variable TF_CONFIG, which has 131072 bytes at most": newJob().with("ps",
			2).with("worker", 9000).plugin("tensorflow"),
		"spec.plugins.mpi: the host names of 9000 pods do not fit": newJob().with("master", 2).with("worker",
			9000).plugin("mpi"),
		"spec.plugins.svc: the host names of 9000 pods do not fit into the variable VC_CREW_HOSTS, which has 131072 bytes at most: with --inject-hosts-env=false pods have them in files only": newJob().with("lead",
			1).with("crew", 9000).plugin("svc"),
	} {
		if d := describe(job.Job, jobs.Facts{}); d.Mistake == nil || !strings.Contains(d.Mistake.Message, want) {
			t.Errorf("told %v, want %q", d.Mistake, want)
		}
	}
}

// The value of an argument may be a secret, which must not be reported.
func TestArgumentValuesAreNotReported(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nMIIB=="
	for _, given := range [][]string{{"--ssh-privat-key=" + key}, {key}, {"--" + key}, {"MIIB=="}, {"--no-root", key},
		{"--ssh-private-key", key, key}} {
		d := describe(twoTasks().plugin("ssh", given...).Job, jobs.Facts{})
		if d.Mistake == nil || strings.Contains(d.Mistake.Message, "MIIB") || strings.Contains(d.Mistake.Message, "BEGIN") {
			t.Errorf("%q: told %v", given, d.Mistake)
		}
	}
}

// TestServiceNamesOfTheCluster: before Kubernetes 1.36 a Service whose name begins with a digit is refused, so a job
// that needs one is never queued; later, and without a Service, it runs.
func TestServiceNamesOfTheCluster(t *testing.T) {
	for _, plugin := range []string{"svc", "ssh", "env", "pytorch", "tensorflow", "mpi", "ray"} {
		for _, name := range []string{"7b-finetune", "finetune-7b"} {
			for _, strict := range []bool{true, false} {
				job := newJob().with("master", 1).with("worker", 1).with("head", 1).plugin(plugin)
				job.Name = name
				d := describe(job.Job, jobs.Facts{StrictServiceNames: strict})
				if want := strict && name == "7b-finetune" && plugin != "ssh" && plugin != "env"; (d.Mistake != nil) != want ||
					want && !strings.Contains(d.Mistake.Message, "must begin with a letter on this cluster") {
					t.Errorf("%s with plugin %s, strict names: %v: told %v, want a mistake: %v", name, plugin, strict, d.Mistake, want)
				}
			}
		}
	}
}

// TestUsualFrameworksHaveRoomForTheirHosts: a thousand pods are no mistake, nor are many pods of other tasks.
func TestUsualFrameworksHaveRoomForTheirHosts(t *testing.T) {
	for name, job := range map[string]jobBuilder{
		"tensorflow": newJob().with("ps", 20).with("worker", 1000).plugin("tensorflow"),
		"mpi":        newJob().with("master", 1).with("worker", 1000).plugin("mpi"),
		"others": newJob().with("master", 1).with("worker", 10).with("reader", 9000).plugin("mpi").plugin("svc",
			"--inject-hosts-env=false"),
	} {
		if d := describe(job.Job, jobs.Facts{}); d.Mistake != nil {
			t.Errorf("%s: told %v, want no mistake", name, d.Mistake)
		}
	}
}

// TestHostsAreRefusedExactlyIfNoProgramStartsWithThem, and not if the pods share a host name or need no variable.
func TestHostsAreRefusedExactlyIfNoProgramStartsWithThem(t *testing.T) {
	refused := func(job jobBuilder) bool { return tooManyHosts(job.Job) != "" }
	accepted, rejected := 0, 0
	for n := int32(6400); n < 6700; n++ {
		mpi := newJob().with("master", 1).with("worker", n).plugin("mpi").plugin("svc", "--inject-hosts-env=false")
		svc := newJob().with("worker", n).plugin("pytorch")
		hosts := strings.Join(hostsOf(mpi.Job, "worker"), ",")
		if want := len("MPI_HOST="+hosts+"\x00") > 131072; refused(mpi) != want {
			t.Fatalf("mpi with %d workers is refused: %t, want %t", n, !want, want)
		}
		want := len("VC_WORKER_HOSTS="+hosts+"\x00") > 131072
		if refused(svc) != want {
			t.Fatalf("pytorch with %d workers is refused: %t, want %t", n, !want, want)
		}
		if want {
			rejected++
		} else {
			accepted++
		}
	}
	if accepted == 0 || rejected == 0 {
		t.Errorf("%d accepted, %d refused: the bound lies elsewhere", accepted, rejected)
	}
	oneHost := newJob().with("master", 1).with("worker", 9000,
		func(task *volcano.TaskSpec) { task.Template.Spec.Hostname = "all" })
	if refused(oneHost.plugin("mpi")) {
		t.Error("a single host name is refused")
	}
	if refused(newJob().with("master", 1).with("worker", 9000).plugin("pytorch").plugin("svc",
		"--inject-hosts-env=false")) {
		t.Error("hosts that are in files only are refused")
	}
}

// TestHostsOfTensorflowFit: a job that is not refused has a TF_CONFIG with which programs start, and not much shorter
// than it may be.
func TestHostsOfTensorflowFit(t *testing.T) {
	longest := 0
	for n := int32(100); n < 9000; n += 3 {
		job := newJob().with("ps", 20).with("worker", n).with("evaluator", 1).plugin("tensorflow")
		if tooManyHosts(job.Job) != "" {
			break
		}
		longest = int(n)
	}
	job := newJob().with("ps", 20).with("worker", int32(longest)).with("evaluator", 1).plugin("tensorflow")
	spec := corev1.PodSpec{Containers: make([]corev1.Container, 1)}
	for _, p := range pluginsOf(job.Job) {
		if p.name == "tensorflow" {
			p.change(job.Job, &replicas.Replica{Group: "worker", Index: int32(longest - 1)}, &spec)
		}
	}
	if bytes := len("TF_CONFIG=" + spec.Containers[0].Env[0].Value + "\x00"); bytes > 131072 || bytes < 130_000 {
		t.Errorf("with %d workers TF_CONFIG takes %d bytes, want somewhat less than 131072", longest, bytes)
	}
}
