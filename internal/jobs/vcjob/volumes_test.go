package vcjob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// Whoever tidies up may take away what the pods of a job need while none of them runs: it is made again before the next
// ones.
func TestARestartedJobRecreatesWhatItsPodsNeed(t *testing.T) {
	job := newJob().with("worker", 1).plugin("svc", "--disable-network-policy").plugin("ssh").is(volcano.Running)
	job.Spec.Volumes = []volcano.VolumeSpec{{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}}}
	admission, running := admitted("worker", 1), pod("job-worker-0").running()
	job = then(see(t, job.Job, admission, of(running)), job)
	same(t, "a pod that is evicted", []string{"create job-worker-0"}, writes(see(t, job.Job, admission, nil)))

	job = then(see(t, job.Job, admission, of(running, command("again", bus.RestartJobAction))), job)
	job = then(see(t, job.Job, admission, of(running)), job) // it is still to go
	job = then(see(t, job.Job, admission, nil), job)
	got := see(t, job.Job, admission, nil)
	same(t, "after a restart", []string{"create v1.PersistentVolumeClaim job-volume-0", "create v1.ConfigMap job-svc",
		"create v1.Service job", "create v1.Secret job-ssh", "create job-worker-0"}, writes(got))

	next := podBuilder{made(t, got, "job-worker-0")}
	next.UID = "next"
	job = then(see(t, then(got, job).Job, admission, of(next)), job)
	same(t, "once that pod is there, and evicted", []string{"create job-worker-0"},
		writes(see(t, job.Job, admission, nil)))
}

func TestVolumesAreClaimedAndMounted(t *testing.T) {
	job := newJob().with("worker", 1)
	job.Spec.Volumes = []volcano.VolumeSpec{{MountPath: "/data", VolumeClaimName: "data"},
		{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}}}
	got := see(t, job.Job, admitted("worker", 1), nil)
	same(t, "writes", []string{"create v1.PersistentVolumeClaim job-volume-1", "create job-worker-0"}, writes(got))
	var mounts []string
	pod := made(t, got, "job-worker-0")
	for i, m := range pod.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, m.MountPath+" "+pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName)
	}
	same(t, "mounts", []string{"/data data", "/scratch job-volume-1"}, mounts)
	if d := describe(job.Job, jobs.Facts{}); d.Mistake != nil {
		t.Error(d.Mistake.Message)
	}
}
