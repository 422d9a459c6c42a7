package genericjob

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// rules parses finish rules: "master 0, worker 0+1" is two rules, "master 0 & worker 1" is one over two types.
func rules(text string) []tensorstack.FinishRule {
	if text == "" {
		return nil
	}
	var out []tensorstack.FinishRule
	for one := range strings.SplitSeq(text, ", ") {
		rule := tensorstack.FinishRule{}
		for part := range strings.SplitSeq(one, " & ") {
			replicaType, indices, _ := strings.Cut(part, " ")
			for index := range strings.SplitSeq(indices, "+") {
				rule[replicaType] = append(rule[replicaType], intstr.Parse(index))
			}
		}
		out = append(out, rule)
	}
	return out
}

// TestRules: the pods of a master and three workers end one after the other. For each combination of success and
// failure rules the job completes when the last listed pod ends, not before, with the wanted phase and message.
func TestRules(t *testing.T) {
	w := newWorld(t)
	for i, test := range []struct {
		what, success, failure string
		ends                   string // pods and their exit codes, in order: "worker-0 0, master-0 1"
		want                   tensorstack.JobPhase
		message                string
	}{
		{"no rules, all succeed", "", "", "master-0 0, worker-0 0, worker-1 0, worker-2 0", tensorstack.JobPhaseSucceeded,
			tensorstack.SucceededMessage},
		{"no rules, one fails", "", "", "master-0 0, worker-1 2", tensorstack.JobPhaseFailed,
			"without success rules all its replicas have to succeed. Pod[%s-worker-1] exited with error code 2"},
		{"one of one", "master 0", "", "worker-0 0, master-0 0", tensorstack.JobPhaseSucceeded, tensorstack.SucceededMessage},
		{"all of several", "worker 0+1+2", "", "worker-0 0, worker-2 0, worker-1 0", tensorstack.JobPhaseSucceeded,
			tensorstack.SucceededMessage},
		{"any of several rules", "master 0, worker 0+1+2", "", "worker-0 0, worker-1 0, worker-2 0",
			tensorstack.JobPhaseSucceeded, tensorstack.SucceededMessage},
		{"a rule over types", "master 0 & worker 0+1", "", "worker-0 0, worker-1 0, master-0 0",
			tensorstack.JobPhaseSucceeded, tensorstack.SucceededMessage},
		{"another rule takes over", "master 0, worker 0", "", "master-0 1, worker-0 0", tensorstack.JobPhaseSucceeded,
			tensorstack.SucceededMessage},
		{"no success rule is left", "master 0, worker 0", "", "master-0 1, worker-0 3", tensorstack.JobPhaseFailed,
			"no success rule can be met any more. Pod[%s-worker-0] exited with error code 3"},
		{"one failure", "worker 0", "master 0", "worker-1 1, master-0 1", tensorstack.JobPhaseFailed,
			`The job is failed with rule: {"master":["0"]}`},
		{"all of a failure rule", "master 0", "worker 0+1", "worker-0 1, worker-2 1, worker-1 1", tensorstack.JobPhaseFailed,
			`The job is failed with rule: {"worker":["0","1"]}`},
		{"any of several failure rules", "master 0", "worker 0+1, worker 2", "worker-0 1, worker-2 1",
			tensorstack.JobPhaseFailed, `The job is failed with rule: {"worker":["2"]}`},
		{"success though others have failed", "master 0", "worker 0+1", "worker-0 1, master-0 0",
			tensorstack.JobPhaseSucceeded, tensorstack.SucceededMessage},
		{"a failure rule over types", "worker 2", "master 0 & worker 0+1", "worker-1 1, master-0 1, worker-0 1",
			tensorstack.JobPhaseFailed, `The job is failed with rule: {"master":["0"],"worker":["0","1"]}`},
		{"a success rule over types, of several", "master 0 & worker 0, worker 1 & master 0", "worker 0",
			"worker-1 0, worker-0 0, master-0 0", tensorstack.JobPhaseSucceeded, tensorstack.SucceededMessage},
		{"a failure rule precedes the last success rule", "worker 0", "worker 0", "worker-1 0, worker-0 1",
			tensorstack.JobPhaseFailed, `The job is failed with rule: {"worker":["0"]}`},
		{"failure rules alone", "", "master 0", "worker-0 0, worker-1 0, worker-2 0, master-0 0",
			tensorstack.JobPhaseSucceeded, tensorstack.SucceededMessage},
	} {
		name := fmt.Sprintf("rules-%d", i)
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			w := &world{w.In(t)}
			w.Create(w.job(name, with("master", 1, 0), with("worker", 3, 0), func(job *tensorstack.GenericJob) {
				job.Spec.SuccessRules, job.Spec.FailureRules, job.Spec.CleanUpPolicy = rules(test.success), rules(test.failure),
					tensorstack.CleanUpAll
			}))
			w.untilPhase(name, tensorstack.JobPhaseRunning)
			ends := strings.Split(test.ends, ", ")
			for j, end := range ends {
				var pod string
				var code int
				if _, err := fmt.Sscan(end, &pod, &code); err != nil {
					t.Fatal(err)
				}
				w.EndReplica(name+"-"+pod, 0, code)
				if j == len(ends)-1 {
					break
				}
				seen := w.untilJob(name, "counts "+pod+" as ended", func(job *tensorstack.GenericJob) bool {
					return job.Status.Aggregate.Succeeded+job.Status.Aggregate.Failed == int32(j+1)
				})
				if seen.Status.Phase != tensorstack.JobPhaseRunning {
					t.Fatalf("phase = %s after %q, want Running", seen.Status.Phase, end)
				}
			}
			job := w.untilJob(name, "is completed", func(job *tensorstack.GenericJob) bool {
				return condition(job, tensorstack.JobCompleted).Status == "True"
			})
			want := strings.ReplaceAll(test.message, "%s", name)
			if got := condition(job, tensorstack.JobCompleted).Message; job.Status.Phase != test.want ||
				!strings.Contains(got, want) {
				t.Errorf("phase and message = %s, %q, want %s, %q", job.Status.Phase, got, test.want, want)
			}
			if failed := condition(job,
				tensorstack.JobFailed).Status == "True"; failed != (test.want == tensorstack.JobPhaseFailed) {
				t.Errorf("condition Failed is true: %v, but the phase should be %s", failed, test.want)
			}
		})
	}
}
