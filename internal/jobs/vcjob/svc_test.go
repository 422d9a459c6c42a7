package vcjob

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestPluginSvcMakesHostsBeforePods(t *testing.T) {
	job := newJob().with("ps", 1).with("big-worker", 2).plugin("svc", "--publish-not-ready-addresses=true")
	got := see(t, job.Job, admitted("ps", 1, "big-worker", 2), nil)
	if want := []string{"create v1.ConfigMap job-svc", "create v1.Service job",
		"create v1.NetworkPolicy job"}; !slices.Equal(writes(got)[:3], want) || len(got.First) != 3 {
		t.Fatalf("first %q, want %q", writes(got), want)
	}
	hosts := got.First[0].Object().(*corev1.ConfigMap).Data
	same(t, "hosts", map[string]string{"ps.host": "job-ps-0.job", "VC_PS_HOSTS": "job-ps-0.job", "VC_PS_NUM": "1",
		"big-worker.host":     "job-big-worker-0.job\njob-big-worker-1.job",
		"big_worker.host":     "job-big-worker-0.job\njob-big-worker-1.job",
		"VC_BIG_WORKER_HOSTS": "job-big-worker-0.job,job-big-worker-1.job", "VC_BIG_WORKER_NUM": "2"}, hosts)
	if s := got.First[1].Object().(*corev1.Service).Spec; s.ClusterIP != corev1.ClusterIPNone ||
		!s.PublishNotReadyAddresses {
		t.Errorf("Service %+v", s)
	}
	pod := made(t, got, "job-big-worker-1")
	if pod.Spec.Hostname != "job-big-worker-1" || pod.Spec.Subdomain != "job" {
		t.Errorf("host %s.%s", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	if v := pod.Spec.Volumes; len(v) != 1 || v[0].ConfigMap == nil || v[0].ConfigMap.Name != "job-svc" {
		t.Errorf("volumes %+v, want that of its hosts", v)
	}
	same(t, "variables", map[string]string{"VC_PS_HOSTS": "from job-svc", "VC_PS_NUM": "from job-svc",
		"VC_BIG_WORKER_HOSTS": "from job-svc", "VC_BIG_WORKER_NUM": "from job-svc"}, variables(pod))

	pod.UID = "made"
	job = then(see(t, job.Job, admitted("ps", 1, "big-worker", 2), of(podBuilder{pod})), job)
	if again := see(t, job.Job, admitted("ps", 1, "big-worker", 2), of(podBuilder{pod})); len(again.First) != 0 {
		t.Errorf("made again: %q", writes(again))
	}
	if quiet := see(t, newJob().with("ps", 1).plugin("svc", "--disable-network-policy").Job, admitted("ps", 1),
		nil); len(quiet.First) != 2 {
		t.Errorf("without a NetworkPolicy: %q", writes(quiet))
	}
}

func TestPluginSvcLeavesHostsToTheFilesIfAskedTo(t *testing.T) {
	job := newJob().with("ps", 1).plugin("svc", "--inject-hosts-env=false")
	if problem := invalidArguments(job.Job); problem != "" {
		t.Fatal(problem)
	}
	pod := made(t, see(t, job.Job, admitted("ps", 1), nil), "job-ps-0")
	if len(variables(pod)) != 0 || len(pod.Spec.Volumes) != 1 || pod.Spec.Hostname != "job-ps-0" {
		t.Errorf("variables %v, volumes %v, host name %q", variables(pod), pod.Spec.Volumes, pod.Spec.Hostname)
	}
}

// Hosts follow a change of replicas, which elastic trainings look for; a job that nobody has changed costs no write.
func TestPluginSvcKeepsHostsAsTheTasksAre(t *testing.T) {
	job := newJob().with("worker", 2).plugin("svc").is(volcano.Running)
	job.Generation = 1
	two := of(pod("job-worker-0").running(), pod("job-worker-1").running())
	if got := see(t, job.Job, admitted("worker", 2), two); len(writes(got)) != 0 {
		t.Fatalf("of a job that nobody has changed: %q", writes(got))
	}
	for _, count := range []int32{3, 1} {
		job.Generation++
		job.Spec.Tasks[0].Replicas = count
		got := see(t, job.Job, admitted("worker", int(count)), two)
		if len(writes(got)) == 0 || writes(got)[0] != "apply v1.ConfigMap job-svc" {
			t.Fatalf("with %d replicas: %q", count, writes(got))
		}
		hosts := got.First[0].Object().(*corev1.ConfigMap).Data
		if n := len(strings.Fields(hosts["worker.host"])); n != int(count) || hosts["VC_WORKER_NUM"] != strconv.Itoa(n) {
			t.Errorf("with %d replicas: %q", count, hosts)
		}
		job = then(got, job)
		if again := see(t, job.Job, admitted("worker", int(count)), two); slices.Contains(writes(again),
			"apply v1.ConfigMap job-svc") {
			t.Errorf("written again: %q", writes(again))
		}
	}
}

// TestHostsAreWrittenAgainOnlyIfTheyWereRefused: whom a quota keeps from more pods has the hosts of his size all the
// same, and is told of the pods; only hosts that could not be written are written again.
func TestHostsAreWrittenAgainOnlyIfTheyWereRefused(t *testing.T) {
	for refused, again := range map[string]bool{"pods": false, "configmaps": true} {
		t.Run(refused, func(t *testing.T) {
			job := newJob().with("worker", 1).plugin("svc").is(volcano.Running)
			job.Generation, job.Spec.Tasks[0].Replicas = 2, 2
			job.Status.ControlledResources = map[string]string{pluginKey("svc"): "svc"}
			one := of(pod("job-worker-0").running())
			refusal := func(o client.Object) error {
				resource := map[bool]string{true: "pods", false: "configmaps"}[isPod(o)]
				if resource != refused {
					return nil
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, o.GetName(), errors.New("exceeded quota"))
			}
			now, events := carriedOut(t, see(t, job.Job, admitted("worker", 2), one), job.Job, refusal)
			if got := slices.Contains(writes(see(t, now, admitted("worker", 2), one)),
				"apply v1.ConfigMap job-svc"); got != again {
				t.Errorf("the hosts are written again: %v, want %v", got, again)
			}
			want := map[string]string{"pods": jobs.FailedCreate, "configmaps": pluginFailedReason}[refused]
			same(t, "events", []string{want}, events)
		})
	}
}

func TestATaskWithAHostNameIsOneHost(t *testing.T) {
	job := newJob().with("worker", 2, func(task *volcano.TaskSpec) { task.Template.Spec.Hostname = "gate" }).plugin("svc")
	hosts := see(t, job.Job, admitted("worker", 2), nil).First[0].Object().(*corev1.ConfigMap).Data
	if hosts["VC_WORKER_HOSTS"] != "gate.job" || hosts["VC_WORKER_NUM"] != "1" {
		t.Errorf("hosts %q", hosts)
	}
}
