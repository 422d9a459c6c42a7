package vcjob

import (
	"strings"
	"testing"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// A job that nobody may queue says what is wrong with it, not that it waits for quota; and one that
// gives its quota back asks for none.
func TestAJobThatCannotBeQueuedSaysWhy(t *testing.T) {
	got := plan(jobs.Seen[*volcano.Job]{Job: twoTasks().is(volcano.Pending).Job, Admission: jobs.Admission{Grant: jobs.Waiting}, Mistake: "the topology is hard", Now: now})
	if s := state(got); s != "Pending InvalidJob: the topology is hard" {
		t.Errorf("state %q", s)
	}
	if !describe(twoTasks().is(volcano.Pending).because(admittedAnewReason).Job, jobs.Facts{}).Paused {
		t.Error("a job that gives its quota back asks for it")
	}
}

func TestMistakesAreReported(t *testing.T) {
	for want, job := range map[string]jobBuilder{
		"form a cycle, through task a":                              newJob().with("a", 1, dependsOn("", "b")).with("b", 1, dependsOn("", "a")),
		"spec.networkTopology is hard":                              func() jobBuilder { j := twoTasks(); j.Spec.NetworkTopology = &volcano.NetworkTopologySpec{}; return j }(),
		"of task worker must be numbers":                            newJob().with("worker", 2, between("3", "")),
		"must be numbers up to 10000 of which":                      newJob().with("worker", 2, between("1", "1")),
		"not below the first nor above":                             newJob().with("worker", 2, between("x", "4")),
		"and, if it is there,":                                      newJob().with("worker", 2, between("", "4")),
		"numbers up to 10000":                                       newJob().with("worker", 2, between("1", "many")),
		"one task of a job may have":                                newJob().with("a", 2, between("1", "")).with("b", 2, between("1", "")),
		"spec.plugins.svc: the name of the Job must be a DNS label": func() jobBuilder { j := twoTasks().plugin("svc"); j.Name = "my.job"; return j }(),
		"unable to find job plugin: horovod":                        twoTasks().plugin("horovod"),
		`"--speed" is not an argument; the arguments are --disable-network-policy, --inject-hosts-env, --publish-not-ready-addresses`: twoTasks().plugin("svc", "--speed=3"),
		"port must be a port, from 1 to 65535":                 twoTasks().plugin("pytorch", "--port=0"),
		"wait-master-image must not be empty":                  twoTasks().plugin("pytorch", "--wait-master-enabled", "--wait-master-image="),
		"ssh-key-file-path must not be empty":                  twoTasks().plugin("ssh", "--ssh-key-file-path="),
		"spec.plugins.ray: port and dashboardPort must differ": newJob().with("head", 1).plugin("ray", "--port=8265"),
		"the plugin has none":                                  twoTasks().plugin("env", "--x"),
		"spec.plugins.mpi: there is no task master, which plays the master: name the one that does with --master":                  twoTasks().plugin("mpi"),
		"spec.plugins.mpi: there is no task crew, which plays the worker":                                                          twoTasks().plugin("mpi", "--master=ps", "--worker=crew"),
		"spec.plugins.ray: there is no task head, which plays the head":                                                            twoTasks().plugin("ray"),
		"spec.plugins.tensorflow: the host names of 9002 pods do not fit into a variable of a pod, which has 131072 bytes at most": newJob().with("ps", 2).with("worker", 9000).plugin("tensorflow"),
		"spec.plugins.mpi: the host names of 9000 pods do not fit":                                                                 newJob().with("master", 2).with("worker", 9000).plugin("mpi"),
	} {
		if d := describe(job.Job, jobs.Facts{}); d.Mistake == nil || !strings.Contains(d.Mistake.Message, want) {
			t.Errorf("told %v, want %q", d.Mistake, want)
		}
	}
}

// The value of an argument may be a secret, which must not be reported.
func TestArgumentValuesAreNotReported(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nMIIB=="
	for _, given := range [][]string{{"--ssh-privat-key=" + key}, {key}, {"--" + key}, {"MIIB=="}, {"--no-root", key}, {"--ssh-private-key", key, key}} {
		d := describe(twoTasks().plugin("ssh", given...).Job, jobs.Facts{})
		if d.Mistake == nil || strings.Contains(d.Mistake.Message, "MIIB") || strings.Contains(d.Mistake.Message, "BEGIN") {
			t.Errorf("%q: told %v", given, d.Mistake)
		}
	}
}

// TestServiceNamesOfTheCluster: before Kubernetes 1.36 a Service whose name begins with a digit is refused, so a job that
// needs one is never queued; later, and without a Service, it runs.
func TestServiceNamesOfTheCluster(t *testing.T) {
	for _, plugin := range []string{"svc", "ssh", "env", "pytorch", "tensorflow", "mpi", "ray"} {
		for _, name := range []string{"7b-finetune", "finetune-7b"} {
			for _, strict := range []bool{true, false} {
				job := newJob().with("master", 1).with("worker", 1).with("head", 1).plugin(plugin)
				job.Name = name
				d := describe(job.Job, jobs.Facts{StrictServiceNames: strict})
				if want := strict && name == "7b-finetune" && plugin != "ssh" && plugin != "env"; (d.Mistake != nil) != want || want && !strings.Contains(d.Mistake.Message, "must begin with a letter on this cluster") {
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
		"others":     newJob().with("master", 1).with("worker", 10).with("reader", 9000).plugin("mpi"),
	} {
		if d := describe(job.Job, jobs.Facts{}); d.Mistake != nil {
			t.Errorf("%s: told %v, want no mistake", name, d.Mistake)
		}
	}
}
