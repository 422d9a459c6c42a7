package view

import (
	"fmt"
	"testing"

	jobsetkeys "github.com/musterhq/muster/api/jobset/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/podproblem"
)

// TestAListSaysWhatKeepsPodsFromBeingReady at once, of the jobs that may run, by what most of their pods report.
func TestAListSaysWhatKeepsPodsFromBeingReady(t *testing.T) {
	pod := func(job, name, reason, message string, created int) corev1.Pod {
		out := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name,
			Labels: map[string]string{jobsetkeys.JobSetNameKey: job}, CreationTimestamp: at(created)}}
		out.Spec.NodeName = "n"
		if reason != "" {
			out.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
		return out
	}
	crashed := pod("train", "a", "", "", 10)
	crashed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(59)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3,
			Reason: "Error"}}}}
	claimless := pod("train", "a", "", "", 10)
	claimless.Spec.NodeName = ""
	claimless.Spec.Volumes = []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "gone"}}}}
	claimless.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "SchedulerError", Message: "not found"}}
	for name, tc := range map[string]struct {
		state   State
		ready   int32
		message string
		pods    []corev1.Pod
		want    string
	}{
		"an image that cannot be pulled": {Starting, 0,
			"", []corev1.Pod{pod("train", "b", "ImagePullBackOff", `Back-off pulling image "x"`, 10),
				pod("train", "a", "ImagePullBackOff", `Back-off pulling image "x"`, 10),
				pod("train", "c", "ErrImagePull", "not found", 10)},
			`ImagePullBackOff: Back-off pulling image "x" (2 pods, as a)`},
		"one of two pods": {Running, 1, "", []corev1.Pod{pod("train", "a", "", "", 10),
			pod("train", "b", "ErrImagePull", "not found", 10)}, "ErrImagePull: not found (pod b)"},
		"after a minute": {Starting, 0, noneReady,
			[]corev1.Pod{pod("train", "a", "ErrImagePull", "not found", 10)}, "ErrImagePull: not found (pod a)"},
		"a job that was restarted": {Starting, 0, "restarted once",
			[]corev1.Pod{pod("train", "a", "ErrImagePull", "not found", 10)}, "restarted once; ErrImagePull: not found (pod a)"},
		"between two crashes": {Starting, 0, "", []corev1.Pod{crashed},
			"Restarted: container main: exit code 3 (pod a)"},
		"a crash, and an image": {Running, 1, "",
			[]corev1.Pod{crashed, pod("train", "b", "ErrImagePull", "not found", 10)}, "ErrImagePull: not found (pod b)"},
		"a missing claim": {Starting, 0, "", []corev1.Pod{claimless},
			"Unschedulable: claim gone does not exist (pod a)"},
		"pods without a problem": {Starting, 0, "", []corev1.Pod{pod("train", "a", "", "", 10)}, ""},
		"pods of another job": {Starting, 0, "",
			[]corev1.Pod{pod("other", "a", "ErrImagePull", "not found", 10)}, ""},
		"pods of an earlier job": {Starting, 0, noneReady,
			[]corev1.Pod{pod("train", "a", "ErrImagePull", "not found", -10)}, noneReady},
		"all pods are ready": {Running, 2, "",
			[]corev1.Pod{pod("train", "a", "ErrImagePull", "not found", 10)}, ""},
		"a job that waits, with old pods": {Pending, 0, "2 more needed",
			[]corev1.Pod{pod("train", "a", "ErrImagePull", "not found", 10)}, "2 more needed"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := []Job{{Namespace: "ml", Kind: "JobSet", Name: "train", State: tc.state, PodsReady: tc.ready, PodsAsked: 2,
				Message: tc.message, CreatedAt: at(0)}}
			for _, job := range Unready(jobs) {
				job.NoteProblem(job.OwnPods(tc.pods), podproblem.Claims{Exists: map[string]bool{"gone": false}},
					podproblem.Mounts{}, at(60).Time)
			}
			if got := jobs[0].Why(); got != tc.want {
				t.Errorf("WHY is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAListReadsPodsOfFewJobs: of those without a ready pod first, then of the latest.
func TestAListReadsPodsOfFewJobs(t *testing.T) {
	var jobs []Job
	for i := range 30 {
		jobs = append(jobs, Job{Name: fmt.Sprint(i), State: Running, PodsReady: 1, PodsAsked: 2, CreatedAt: at(i)})
	}
	jobs = append(jobs, Job{Name: "done", State: Completed, PodsAsked: 2},
		Job{Name: "starting", State: Starting, PodsAsked: 2, CreatedAt: at(0)})
	got := Unready(jobs)
	if len(got) != mostUnready || got[0].Name != "starting" || got[1].Name != "29" {
		t.Errorf("got %d, the first %s and %s; want %d, starting and 29 first", len(got), got[0].Name,
			got[1].Name, mostUnready)
	}
}
