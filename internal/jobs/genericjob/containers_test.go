package genericjob

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// large is a job of the largest size, with names of the largest length, all of whose pods have ended with
// these containers; every tenth has failed.
func large(containers int, restart ...tensorstack.RestartPolicy) (jobBuilder, []jobstest.Pod) {
	job := newJob().with("worker", 5000, restart...)
	job.Name = strings.Repeat("j", 63-len("-worker-4999"))
	var pods []jobstest.Pod
	for i := range 5000 {
		p := pod(fmt.Sprintf("%s-worker-%d", job.Name, i)).Ended(map[bool]int32{true: 255}[i%10 == 0])
		p.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
		ended := p.Status.ContainerStatuses[0]
		p.Status.ContainerStatuses = nil
		for c := range containers {
			ended.Name = fmt.Sprintf("%s%d", strings.Repeat("c", 62), c)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, ended)
		}
		pods = append(pods, p)
	}
	return job, pods
}

// planned is the job with the status of its next plan, and whether that changed anything.
func planned(job jobBuilder, pods []jobstest.Pod) (jobBuilder, bool) {
	p := plan(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Admission: unqueued,
		Children: of(pods...), Now: now})
	return then(p, job), p.Status != nil
}

func sizeInEtcd(t *testing.T, o client.Object) int {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// listed counts replicas of which the status lists containers, by whether they have failed.
func listed(job jobBuilder) map[bool]int {
	out := map[bool]int{}
	for _, r := range job.Status.Tasks[0].Replicas {
		if len(r.Containers) > 0 {
			out[r.Phase == tensorstack.ReplicaFailed]++
		}
	}
	return out
}

// TestTheStatusOfTheLargestJobFitsIntoEtcd: a status that etcd refuses would keep the job from ever ending. What the
// operator reads back stays, and containers are listed as far as there is room, those of failed replicas first.
func TestTheStatusOfTheLargestJobFitsIntoEtcd(t *testing.T) {
	for _, containers := range []int{1, 3, 4, 9} {
		job, pods := large(containers)
		job, _ = planned(job, pods)
		if job.Status.Phase != tensorstack.JobPhaseFailed {
			t.Errorf("%d containers: the job is %s, want it ended", containers, job.Status.Phase)
		}
		if size := sizeInEtcd(t, job.GenericJob); size > etcdBytes-reservedBytes {
			t.Errorf("%d containers: the job takes %d bytes, which leaves too little of the %d that etcd takes",
				containers, size, etcdBytes)
		}
		for i, r := range job.Status.Tasks[0].Replicas {
			if r.Name != pods[i].Name || r.UID != pods[i].UID || r.Phase != tensorstack.ReplicaPhase(pods[i].Status.Phase) {
				t.Fatalf("%d containers: the status says %+v of %s in phase %s", containers, r, pods[i].Name, pods[i].Status.Phase)
			}
		}
		n := listed(job)
		if n[true] == 0 || n[true] < 500 && n[false] > 0 {
			t.Errorf("%d containers: they are listed of %d of 500 failed replicas and of %d others, want the failed ones first",
				containers, n[true], n[false])
		}
		if again, changed := planned(job, pods); changed {
			t.Errorf("%d containers: the next plan lists them of %v instead of %v", containers, listed(again), n)
		}
	}
}

// TestContainersOfALargeJobAreNotListedAnewWhenOthersAreGone: the lists that a status has dropped cannot
// come back, and those that it has do not make way for each other from one write to the next.
func TestContainersOfALargeJobAreNotListedAnewWhenOthersAreGone(t *testing.T) {
	job, pods := large(3, tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: math.MaxInt32})
	job, _ = planned(job, pods)
	for _, gone := range []int{100, 2500, 5000} {
		left := pods[gone:]
		job, _ = planned(job, left)
		for range 3 {
			again, changed := planned(job, left)
			if changed {
				t.Errorf("with %d pods gone, %v becomes %v without any change", gone, listed(job), listed(again))
			}
			job = again
		}
	}
}

// TestASpecOfAnySizeLeavesRoom: what a large spec takes is not used for containers.
func TestASpecOfAnySizeLeavesRoom(t *testing.T) {
	job, pods := large(1)
	job.Spec.ReplicaSpecs[0].Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TEXT",
		Value: strings.Repeat("x", 300<<10)}}
	job, _ = planned(job, pods)
	if size := sizeInEtcd(t, job.GenericJob); size > etcdBytes-reservedBytes || len(listed(job)) > 0 {
		t.Errorf("the job takes %d bytes, and containers are listed of %v", size, listed(job))
	}
}

// TestSizesAreUpperBounds: no task is encoded in more bytes than it is taken for.
func TestSizesAreUpperBounds(t *testing.T) {
	job, pods := large(2, tensorstack.RestartPolicy{Policy: tensorstack.RestartAlways, Limit: math.MaxInt32})
	job.Status.Tasks = []tensorstack.Tasks{{Type: "worker", RestartCount: math.MaxInt32}}
	for i, p := range pods {
		p.Attempt(math.MaxInt32)
		job.Status.Tasks[0].Replicas = append(job.Status.Tasks[0].Replicas,
			tensorstack.ReplicaStatus{Name: p.Name, RestartCount: math.MaxInt32})
		for c := range pods[i].Status.ContainerStatuses {
			p.Status.ContainerStatuses[c].State.Terminated.ExitCode = math.MinInt32
		}
	}
	tasks, _ := newPlanner(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Admission: unqueued,
		Children: of(pods[:100]...), Now: now}).tasks(false)
	text, err := json.Marshal(tasks)
	if err != nil {
		t.Fatal(err)
	}
	if _, all := sizeOf(&job.Spec, tasks); len(text) > all {
		t.Errorf("tasks are taken for %d bytes, and are encoded in %d", all, len(text))
	}
}

// TestALongRuleIsCutInConditions: a rule may name thousands of replicas, and several conditions tell it.
func TestALongRuleIsCutInConditions(t *testing.T) {
	failing := tensorstack.FinishRule{}
	for range 50000 {
		failing["worker"] = append(failing["worker"], intstr.FromInt32(0))
	}
	job := newJob().with("worker", 1).failsBy(failing)
	job, _ = planned(job, []jobstest.Pod{pod("job-worker-0").Ended(1)})
	if job.Status.Phase != tensorstack.JobPhaseFailed {
		t.Fatalf("the job is %s, want Failed", job.Status.Phase)
	}
	for _, c := range job.Status.Conditions {
		if len(c.Message) > messageBytes {
			t.Errorf("the message of %s has %d bytes", c.Type, len(c.Message))
		}
	}
}
