package operators

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// counted are jobs of one pod each, in the queue q.
var counted = []string{`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: good, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  replicatedJobs:
  - name: w
    template: {spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/trainer}]}}}}
`, `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: bad, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  replicatedJobs:
  - name: w
    template: {spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/trainer}]}}}}
`, `
apiVersion: breezeml.ai/v1
kind: TrainingJob
metadata: {name: training, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  runPolicy: {}
  minSize: 1
  maxSize: 1
  replicaSpecs: {template: {spec: {containers: [{name: main, image: example.com/trainer}]}}}
`, `
apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
metadata: {name: generic, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  successRules: [{worker: [0]}]
  failureRules: [{worker: [0]}]
  replicaSpecs:
  - {type: worker, replicas: 1, restartPolicy: {policy: Never}, template: {spec: {containers: [{name: main, image: example.com/trainer}]}}}
`, `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: vc}
spec:
  queue: q
  schedulerName: volcano
  tasks:
  - {name: worker, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/trainer}]}}}
`}

// TestMetricsCountWhatHappened: jobs of five kinds run, wait, fail, are evicted and deleted, and the metrics of their
// names say how often. All that the page of metrics has for these APIs is in the scrape, but for what there is none of.
func TestMetricsCountWhatHappened(t *testing.T) {
	w := newWorld(t)
	w.podQueue(2)
	running := w.operate()
	w.UntilHeld(w.Job("any", "q", 1), true)
	in := []string{"cluster_queue=" + w.Namespace}
	door := []string{"name=q", "namespace=" + w.Namespace}

	w.Create(w.Job("holds", "q", 2))
	w.run("holds", 2)
	w.UntilWorkloadOf("holds", "is ready", ready)
	w.Create(w.Job("waits", "q", 1))
	w.UntilWorkloadOf("waits", "waits", harness.Waits(kueue.WorkloadWaitingForQuota, ""))
	both := map[string]float64{
		"kueue_pending_workloads status=active": 1, "kueue_pending_workloads status=inadmissible": 0,
		"kueue_reserving_active_workloads": 1, "kueue_admitted_active_workloads": 1,
		"kueue_cluster_queue_nominal_quota resource=pods":        2,
		"kueue_cluster_queue_resource_reservation resource=pods": 2, "kueue_cluster_queue_resource_usage resource=pods": 2,
		"kueue_cluster_queue_status status=active": 1, "kueue_cluster_queue_status status=pending": 0,
	}
	w.untilShows(running, in, both)
	w.untilShows(running, door, map[string]float64{
		"kueue_local_queue_pending_workloads status=active": 1, "kueue_local_queue_admitted_active_workloads": 1,
		"kueue_local_queue_reserving_active_workloads":         1,
		"kueue_local_queue_resource_reservation resource=pods": 2, "kueue_local_queue_resource_usage resource=pods": 2,
		"kueue_local_queue_status active=True": 1,
	})

	holder := w.UntilWorkloadOf("holds", "runs", runs)
	w.Patch(holder, `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("holds", "is evicted", harness.IsEvicted(kueue.WorkloadDeactivated))
	w.endPodOf("waits", 0)
	w.UntilWorkloadOf("waits", "has finished", succeeded)
	for _, text := range counted {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(w.Namespace)
		w.Create(o)
		switch o.GetName() {
		case "bad", "generic":
			w.endPodOf(o.GetName(), 1)
		default:
			w.endPodOf(o.GetName(), 0)
		}
		w.UntilWorkloadOf(o.GetName(), "has finished", func(o *kueue.Workload) bool {
			return meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished)
		})
		if o.GetName() == "training" {
			w.Delete(o)
		}
	}

	const jobs = 7 // holds, waits, and those of counted
	w.untilShows(running, in, map[string]float64{
		"kueue_admitted_workloads_total": jobs, "kueue_quota_reserved_workloads_total": jobs,
		"kueue_admission_wait_time_seconds":      jobs,
		"kueue_quota_reserved_wait_time_seconds": jobs, "kueue_ready_wait_time_seconds": jobs,
		"kueue_admitted_until_ready_wait_time_seconds":                      jobs,
		"kueue_evicted_workloads_total":                                     1,
		"kueue_evicted_workloads_total reason=" + kueue.WorkloadDeactivated: 1, "kueue_evicted_workloads_once_total": 1,
		"kueue_pending_workloads status=active": 0, "kueue_reserving_active_workloads": 0,
		"kueue_admitted_active_workloads":                  0,
		"kueue_cluster_queue_resource_usage resource=pods": 0,
	})
	w.untilShows(running, door, map[string]float64{
		"kueue_local_queue_admitted_workloads_total": jobs, "kueue_local_queue_quota_reserved_workloads_total": jobs,
		"kueue_local_queue_evicted_workloads_total": 1,
	})
	w.untilShows(running, []string{"namespace=" + w.Namespace},
		map[string]float64{"jobset_completed_total": 1, "jobset_failed_total": 1})
	w.untilShows(running, []string{"job_namespace=" + w.Namespace}, map[string]float64{
		"training_operator_jobs_created_total framework=trainingjob":    1,
		"training_operator_jobs_successful_total framework=trainingjob": 1,
		"training_operator_jobs_deleted_total framework=trainingjob":    1,
		"training_operator_jobs_created_total framework=genericjob":     1,
		"training_operator_jobs_failed_total framework=genericjob":      1,
		"training_operator_jobs_created_total framework=job":            1,
		"training_operator_jobs_successful_total framework=job":         1,
		"training_operator_jobs_failed_total":                           1, "training_operator_jobs_deleted_total": 1,
	})
	w.untilShows(running, nil, map[string]float64{"kueue_admission_attempts_total result=inadmissible": -1,
		"kueue_admission_attempts_total result=success": -1})
	w.expectThePage(running)
}

// absent are the names of the page that nothing of the test gives a value: there are no checks, cohorts, limits,
// preemptions, shares or restarts. What a LocalQueue uses is shown while it uses any, as the test has seen by then.
var absent = []string{"kueue_admission_checks_wait_time_seconds", "kueue_cluster_queue_borrowing_limit",
	"kueue_cluster_queue_lending_limit", "kueue_cluster_queue_weighted_share", "kueue_cohort_weighted_share",
	"kueue_preempted_workloads_total", "kueue_local_queue_resource_reservation", "kueue_local_queue_resource_usage",
	"training_operator_jobs_restarted_total"}

// expectThePage compares the names of the page with those of the scrape.
func (w *world) expectThePage(running *operator.Operator) {
	w.Helper()
	page, err := os.ReadFile("../../../docs/operate/metrics.md")
	if err != nil {
		w.Fatal(err)
	}
	ours := regexp.MustCompile(`^(kueue|jobset|training_operator)_`)
	var want, got []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		if ours.MatchString(match[1]) && !slices.Contains(absent, match[1]) {
			want = append(want, match[1])
		}
	}
	for name := range running.Metrics(w.T, nil) {
		if ours.MatchString(name) {
			got = append(got, name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("names (-page +scrape):\n%s", diff)
	}
}

// untilShows waits until the series with the labels of each, "name label=value", add up to this; to anything but 0
// where that is below 0.
func (w *world) untilShows(running *operator.Operator, labels []string, want map[string]float64) {
	w.Helper()
	got := map[string]float64{}
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, harness.Patience,
		true, func(context.Context) (bool, error) {
			clear(got)
			for metric, value := range want {
				name, label, labelled := strings.Cut(metric, " ")
				with := slices.Clone(labels)
				if labelled {
					with = append(with, label)
				}
				if got[metric] = running.Metrics(w.T, with)[name]; value < 0 && got[metric] > 0 {
					got[metric] = value
				}
			}
			return maps.Equal(got, want), nil // there is nothing to subscribe to
		})
	if err != nil {
		w.Fatalf("metrics with %v (-want +got):\n%s", labels, cmp.Diff(want, got))
	}
}

// endPodOf waits for the one pod of a job that lives, has it run and be ready, and then end so.
func (w *world) endPodOf(job string, exitCode int32) {
	w.Helper()
	var pod corev1.Pod
	lives := func(what string, phase corev1.PodPhase) {
		w.UntilPods(fmt.Sprintf("a pod of %s is %s", job, what), func(pods map[string]corev1.Pod) bool {
			for name, p := range pods {
				if strings.HasPrefix(name, job+"-") && p.Status.Phase == phase && p.DeletionTimestamp == nil {
					pod = p
					return true
				}
			}
			return false
		})
	}
	lives("there", corev1.PodPending)
	w.SetPodStatus(pod, corev1.PodRunning, 0)
	w.UntilWorkloadOf(job, "is ready", ready)
	lives("running", corev1.PodRunning)
	phase := corev1.PodSucceeded
	if exitCode != 0 {
		phase = corev1.PodFailed
	}
	w.SetPodStatus(pod, phase, exitCode)
}

func ready(o *kueue.Workload) bool {
	return is(o, kueue.WorkloadPodsReady, "True", kueue.WorkloadStarted)
}

func succeeded(o *kueue.Workload) bool {
	return is(o, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonSucceeded)
}
