package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// editor returns a client of a user who has the role edit in the namespace, once the API server heeds that.
func (w *world) editor() client.Client {
	w.Helper()
	if err := install.GrantUsers(w.Context(), w.Cluster.Config, ""); err != nil {
		w.Fatal(err)
	}
	user := "ada-" + w.Namespace
	w.Create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "users"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}})
	config := rest.CopyConfig(w.Cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	w.Create(w.bare("probe", "none", 1))
	err = wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, harness.Patience,
		true, func(ctx context.Context) (bool, error) {
			probe := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}}
			err := c.Patch(ctx, probe, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"active":false}}`)))
			if apierrors.IsForbidden(err) {
				return false, nil
			}
			return err == nil, err
		})
	if err != nil {
		w.Fatalf("waiting until a user with the role edit may stop a Workload: %v", err)
	}
	return c
}

// podsOf records the names of the Jobs of which pods were created in the namespace.
func (w *world) podsOf() func() map[string]int {
	w.Helper()
	var mu sync.Mutex
	made := map[string]int{}
	harness.Follow(w.World, &corev1.PodList{}, func(event watch.Event) {
		if event.Type == watch.Added {
			made[event.Object.(*corev1.Pod).Labels[batchv1.JobNameLabel]]++
		}
	}, &mu)
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		out := map[string]int{}
		for name, n := range made {
			out[name] = n
		}
		return out
	}
}

// TestAUserStartsNoJobThatWaits, in a full queue, whatever names the queue and whatever the same change removes: none
// of the Jobs ever gets a pod.
func TestAUserStartsNoJobThatWaits(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 1)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "default"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
	ada := w.editor()
	w.Create(w.bare("filler", "gpu", 1))
	w.UntilWorkload("filler", "holds the quota", runs)
	real := w.gang("real", "gpu", 1, time.Hour)
	w.Create(real)
	w.UntilWorkloadOf("real", "waits", harness.Waits(kueue.WorkloadWaitingForQuota, ""))
	made := w.podsOf()

	owned := func(name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: name, UID: uid,
			Controller: ptr.To(true)}}
	}
	const nothing = "11111111-1111-1111-1111-111111111111"
	start := `"spec":{"suspend":false}`
	reference := fmt.Sprintf(`"ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"real","uid":%q,"controller":true}]`, real.UID)
	for name, tc := range map[string]struct {
		queue   string // the label, "" for none: then the LocalQueue default takes the Job
		edit    func(*batchv1.Job)
		patches []string
	}{
		"free": {"", nil, []string{"{" + start + "}"}},
		"label": {"gpu", nil, []string{"{" + start + "}",
			`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}},` + start + "}"}},
		"empty":    {"gpu", nil, []string{`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":""}},` + start + "}"}},
		"two-step": {"gpu", nil, []string{`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}}`, "{" + start + "}"}},
		"annotation": {"", func(job *batchv1.Job) { job.Annotations = map[string]string{kueue.QueueAnnotation: "gpu"} },
			[]string{`{"metadata":{"annotations":{"kueue.x-k8s.io/queue-name":null}},` + start + "}"}},
		"unmarked": {"gpu", nil, []string{`{"metadata":{"annotations":{"muster.dev/queued":null}}}`,
			`{"metadata":{"labels":null,"annotations":null},` + start + "}"}},
		"adopted": {"gpu", nil, []string{`{"metadata":{"labels":null,` + reference + `},` + start + "}"}},
		"real-evil0": {"gpu", func(job *batchv1.Job) { job.OwnerReferences = owned("real", real.UID) },
			[]string{"{" + start + "}"}},
		"real-workers-0": {"gpu", func(job *batchv1.Job) { job.OwnerReferences = owned("real", real.UID) },
			[]string{"{" + start + "}"}},
		"zz-w-0": {"gpu", func(job *batchv1.Job) {
			job.OwnerReferences = owned("zz", nothing)
			job.Labels["jobset.sigs.k8s.io/jobset-name"] = "zz"
		}, []string{"{" + start + "}"}},
	} {
		job := w.batchJob(name, tc.queue, 2, time.Second)
		job.Spec.Suspend = nil
		if tc.edit != nil {
			tc.edit(job)
		}
		if err := ada.Create(t.Context(), job); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, patch := range tc.patches {
			for range 5 {
				err := ada.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch)))
				if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
					t.Errorf("%s: %s: %v", name, patch, err)
				}
				if err == nil && !ptr.Deref(job.Spec.Suspend, false) {
					t.Errorf("%s: %s: the Job is started", name, patch)
				}
			}
		}
	}
	// Another Job without a queue, made before, would get its pods by now.
	free := w.batchJob("elsewhere", "", 1, time.Hour)
	free.Spec.ManagedBy = nil
	w.Delete(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "default"}})
	w.UntilHeld(free, false)
	forged := w.batchJob("real-workers-9", "", 1, time.Hour)
	forged.Spec.Suspend, forged.OwnerReferences = ptr.To(true), owned("real", real.UID)
	if err := ada.Create(t.Context(), forged); err != nil ||
		forged.Annotations[muster.QueuedAnnotation] != muster.NotQueued {
		t.Errorf("a Job without a queue that names a JobSet as its controller: mark %q, error %v, want it marked as nobody's",
			forged.Annotations[muster.QueuedAnnotation], err)
	}
	w.Create(free)
	w.UntilPodsOf("elsewhere", 1)
	got := made()
	delete(got, "elsewhere")
	if len(got) > 0 {
		t.Errorf("pods were created without quota, by Job: %v", got)
	}
}

// TestAUserGivesARunningJobNoMorePodsThanItWasGranted: the Job asks for 50 pods, and the queue has room for one. Its
// manifest can be applied again and again, and no other pod is ever created: they would end slowly.
func TestAUserGivesARunningJobNoMorePodsThanItWasGranted(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    func(*batchv1.Job)
		patches []string
	}{
		"partly admitted": {
			func(job *batchv1.Job) { job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1"} },
			[]string{`{"spec":{"parallelism":50,"completions":50}}`, `{"spec":{"parallelism":40}}`},
		},
		"elastic": {
			func(job *batchv1.Job) {
				metav1.SetMetaDataAnnotation(&job.Spec.Template.ObjectMeta, muster.MinReplicasAnnotation, "1")
				metav1.SetMetaDataAnnotation(&job.Spec.Template.ObjectMeta, muster.MaxReplicasAnnotation, "60")
				job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
			},
			[]string{`{"spec":{"parallelism":50,"completions":50}}`, `{"spec":{"parallelism":40,"completions":40}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 2)
			ada := w.editor()
			filler := w.bare("filler", "gpu", 1)
			w.Create(filler)
			w.UntilWorkload("filler", "holds quota", runs)
			job := w.batchJob("job", "gpu", 50, time.Hour)
			job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
			tc.edit(job)
			w.untilHeld(job)
			made := w.podsOf()
			if err := ada.Create(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			w.UntilJob("job", "runs with one pod", running(1))
			patch := func(patch string) error {
				return ada.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch)))
			}
			for range 20 {
				for _, manifest := range tc.patches {
					if err := patch(manifest); err != nil || *job.Spec.Parallelism != 1 {
						t.Fatalf("%s: parallelism %d, error %v; want it accepted, and 1", manifest, *job.Spec.Parallelism, err)
					}
				}
			}
			if name == "elastic" {
				if err := patch(`{"spec":{"parallelism":70,"completions":70}}`); !apierrors.IsForbidden(err) {
					t.Errorf("more than it asked for: %v, want it refused", err)
				}
				w.UntilJob("job", "is to have 40 pods", func(job *batchv1.Job) bool {
					return strings.Contains(job.Annotations[muster.BeforeAdmissionAnnotation], `"parallelism":40`)
				})
				w.UntilEvent("job", "QueueDecides")
			}
			if got := made(); got["job"] != 1 {
				t.Errorf("%d pods were created, want 1", got["job"])
			}
			if name == "elastic" {
				w.Delete(filler)
				w.UntilJob("job", "has grown", func(job *batchv1.Job) bool {
					return *job.Spec.Parallelism == 2 && *job.Spec.Completions == 2 &&
						job.Annotations[muster.GrantedPodsAnnotation] == "2"
				})
			}
		})
	}
}

// TestAUserWithTheRoleEditStopsAndContinuesAJob, by its Workload, of which nothing else is the user's to change.
func TestAUserWithTheRoleEditStopsAndContinuesAJob(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	ada := w.editor()
	job := w.batchJob("job", "gpu", 1, time.Hour)
	w.untilHeld(job)
	if err := ada.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	w.UntilJob("job", "runs", running(1))
	own := w.UntilWorkloadOf("job", "is admitted", runs)
	patch := func(patch string) error {
		return ada.Patch(t.Context(), &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: own.Name}},
			client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	for _, refused := range []string{`{"spec":{"priority":1000}}`, `{"metadata":{"labels":{"a":"b"}}}`,
		`{"metadata":{"ownerReferences":null}}`, `{"metadata":{"finalizers":null}}`,
		`{"metadata":{"annotations":{"a":"b"}}}`} {
		if err := patch(refused); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.active alone") {
			t.Errorf("%s: %v, want it refused, as spec.active alone is the user's", refused, err)
		}
	}
	if err := patch(`{"spec":{"active":false}}`); err != nil {
		t.Fatal(err)
	}
	w.UntilJob("job", "is stopped", harness.Stopped)
	if err := patch(`{"spec":{"active":true}}`); err != nil {
		t.Fatal(err)
	}
	w.UntilJob("job", "runs again", running(1))
}

// jobsOfOnePod are jobs called a, of one pod that runs for an hour in the queue gpu, by their kind.
var jobsOfOnePod = map[string]func(*world) client.Object{
	"job":    func(w *world) client.Object { return w.batchJob("a", "gpu", 1, time.Hour) },
	"jobset": func(w *world) client.Object { return w.gang("a", "gpu", 1, time.Hour) },
	"trainingjob": func(w *world) client.Object {
		pod, meta := templateOfOnePod(w)
		return &breezeml.TrainingJob{ObjectMeta: meta,
			Spec: breezeml.TrainingJobSpec{ReplicaSpecs: breezeml.ReplicaSpec{Template: pod}}}
	},
	"genericjob": func(w *world) client.Object {
		pod, meta := templateOfOnePod(w)
		return &tensorstack.GenericJob{ObjectMeta: meta,
			Spec: tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{{Type: "w", Template: pod}}}}
	},
	"vcjob": func(w *world) client.Object {
		pod, meta := templateOfOnePod(w)
		return &volcano.Job{ObjectMeta: meta,
			Spec: volcano.JobSpec{MinAvailable: 1, Tasks: []volcano.TaskSpec{{Name: "w", Replicas: 1, Template: pod}}}}
	},
}

// templateOfOnePod returns the pod template of such a job, and the job's metadata.
func templateOfOnePod(w *world) (corev1.PodTemplateSpec, metav1.ObjectMeta) {
	job := w.batchJob("a", "gpu", 1, time.Hour)
	return job.Spec.Template, metav1.ObjectMeta{Namespace: w.Namespace, Name: "a", Labels: job.Labels}
}

// TestOrphanedPodsKeepTheirQuota until they have ended: a job that is deleted without its pods makes no room for
// another.
func TestOrphanedPodsKeepTheirQuota(t *testing.T) {
	for name, make := range jobsOfOnePod {
		for _, end := range []string{"ends", "is evicted"} {
			t.Run(name+" "+end, func(t *testing.T) {
				w := newWorld(t)
				w.gpuQueue("gpu", 1)
				a := make(w)
				w.Create(a)
				own := w.UntilWorkloadOf("a", "is admitted", runs)
				var pod corev1.Pod
				w.UntilPods("a pod runs", func(all map[string]corev1.Pod) bool {
					for _, pod = range all {
						return pod.Status.Phase == corev1.PodRunning
					}
					return false
				})
				if err := w.Client.Delete(t.Context(), a, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
					t.Fatal(err)
				}
				w.UntilWorkload(own.Name, "has no owner", func(o *kueue.Workload) bool { return len(o.OwnerReferences) == 0 })
				w.Create(w.bare("b", "gpu", 1))
				w.UntilWorkload("b", "waits for the quota of the pod", harness.Waits(kueue.WorkloadWaitingForQuota, ""))
				if end == "ends" {
					w.EndPod(pod, 0)
				} else {
					w.Patch(own, `{"spec":{"active":false}}`)
				}
				w.UntilWorkload("b", "has the quota", runs)
				w.UntilWorkload(own.Name, "is finished", func(o *kueue.Workload) bool {
					return is(o, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonOwnerNotFound)
				})
			})
		}
	}
}

// TestAJobThatAFinalizerKeepsCanBeEvicted: its user gives it, or the Job of a JobSet, a finalizer and deletes it. Its
// pods run on until the queue takes the quota back.
func TestAJobThatAFinalizerKeepsCanBeEvicted(t *testing.T) {
	all := maps.Clone(jobsOfOnePod)
	all["job of a jobset"] = jobsOfOnePod["jobset"]
	for name, make := range all {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 1)
			a := make(w)
			w.Create(a)
			own := w.UntilWorkloadOf("a", "is admitted", runs)
			w.UntilPods("a pod runs", func(all map[string]corev1.Pod) bool {
				for _, pod := range all {
					return pod.Status.Phase == corev1.PodRunning
				}
				return false
			})
			kept := a
			if name == "job of a jobset" {
				kept = harness.UntilOne(w.World, &batchv1.JobList{}, "a-workers-0", "is there",
					func(*batchv1.Job) bool { return true })
			}
			w.Patch(kept, `{"metadata": {"finalizers": ["example.com/mine"]}}`)
			defer w.Patch(kept, `{"metadata": {"finalizers": null}}`)
			if err := w.Client.Delete(t.Context(), kept,
				client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
			w.Create(w.bare("b", "gpu", 1))
			w.UntilWorkload("b", "waits for the quota of the pod", harness.Waits(kueue.WorkloadWaitingForQuota, ""))
			w.Patch(own, `{"spec":{"active":false}}`)
			w.UntilWorkload("b", "has the quota", runs)
			w.UntilPods("no pod runs", func(all map[string]corev1.Pod) bool {
				for _, pod := range all {
					if pod.Status.Phase == corev1.PodRunning {
						return false
					}
				}
				return true
			})
		})
	}
}

// TestPodsOfAnOrphanedLatticeJobKeepTheirQuota: its VCJob runs on without the LatticeJob, and the pods without both.
// The quota is theirs until they have ended, and they are listed.
func TestPodsOfAnOrphanedLatticeJobKeepTheirQuota(t *testing.T) {
	w := newWorld(t)
	w.Queue("gpu", simulated,
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Ti")})
	job := w.latticeJob()
	w.Create(job)
	own := w.UntilWorkloadOf("job", "is admitted", runs)
	var running map[string]corev1.Pod
	w.UntilPods("two pods are there", func(all map[string]corev1.Pod) bool { running = all; return len(all) == 2 })
	for _, pod := range running {
		w.Patch(&pod, `{"metadata": {"annotations": {"muster.dev/sim-duration": "1h"}}}`)
	}
	orphan := func(o client.Object) {
		if err := w.Client.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(kind, message string) {
		t.Helper()
		said, _ := w.Muster("jobs", "-o", "json")
		var list struct {
			Items []struct{ Kind, Name, Message string }
		}
		if err := json.Unmarshal([]byte(said), &list); err != nil {
			t.Fatalf("%v:\n%s", err, said)
		}
		for _, is := range list.Items {
			if is.Kind == kind && is.Name == "job" || is.Name == own.Name {
				if strings.Contains(is.Message, message) {
					return
				}
			}
		}
		t.Errorf("muster jobs does not list the pods as of a %s, with %q:\n%s", kind, message, said)
	}
	orphan(job)
	vcjob := harness.UntilOne(w.World, &volcano.JobList{}, "job", "has no owner",
		func(o *volcano.Job) bool { return len(o.OwnerReferences) == 0 })
	next := w.batchJob("next", "gpu", 1, time.Hour)
	next.Spec.Template.Spec.Containers[0].Resources =
		corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	w.Create(next)
	w.UntilWorkloadOf("next", "waits for the quota of the VCJob", harness.Waits(kueue.WorkloadWaitingForQuota, ""))
	listed("VCJob", "")
	orphan(vcjob)
	w.UntilWorkload(own.Name, "has no owner", func(o *kueue.Workload) bool { return len(o.OwnerReferences) == 0 })
	w.Operator().Kill()
	listed("Workload", "its job was deleted without its pods, which keep its quota until they end")
	for name, pod := range running {
		if wl := w.UntilWorkload(own.Name, "is there",
			func(*kueue.Workload) bool { return true }); wl.Status.Admission == nil {
			t.Errorf("it holds no quota while %s runs", name)
		}
		w.Delete(&pod)
	}
	w.UntilWorkloadOf("next", "has the quota", runs)
}
