package operators

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

const (
	// holding is the chart's file with the webhook that holds Jobs.
	holding = "../../../charts/muster/webhook/job-hold.yaml"
	// startedUnheld counts Jobs that nothing held.
	startedUnheld = "muster_jobs_started_unheld_total"
)

// TestJobsAreHeldByTheWebhookWithoutPolicies: in a namespace that is left out of the policies, a Job starts that is
// more than the queue has, is stopped when the operator sees it, and counts against the queue until its pods are gone,
// of which the metric tells. Once the webhook is applied it holds Jobs from their creation; and while the operator is
// down Jobs are made all the same.
func TestJobsAreHeldByTheWebhookWithoutPolicies(t *testing.T) {
	w := newWorld(t)
	w.podQueue(2)
	w.leaveOut()
	early := w.Job("early", "q", 3)
	early.Spec.Template.Finalizers = []string{lasting}
	w.UntilHeld(early, false)
	w.Create(early)
	pods := w.UntilPodsOf("early", 3)

	door := w.newDoor()
	running := w.operate(append(door.flags, w.configured("batchJob: {webhook: true}"))...)
	w.UntilWorkloadOf("early", "counts without quota", func(o *kueue.Workload) bool {
		return o.Status.Admission == nil && is(o, muster.UnheldCondition, metav1.ConditionTrue, muster.UnheldReason)
	})
	w.UntilJob("early", "is told to stop", func(job *batchv1.Job) bool { return *job.Spec.Suspend })
	w.Create(w.Workload("other", "q"))
	w.UntilWorkload("other", "waits, though nobody has quota",
		harness.Waits(kueue.WorkloadWaitingForQuota, "2 more needed"))
	for i := range pods {
		w.Patch(&pods[i], `{"metadata": {"finalizers": null}}`)
	}
	w.UntilWorkload("other", "runs", runs)
	w.UntilWorkloadOf("early", "waits like any other", func(o *kueue.Workload) bool {
		return harness.Waits(kueue.WorkloadExceedsMaxQuota, "")(o) &&
			!is(o, muster.UnheldCondition, metav1.ConditionTrue, muster.UnheldReason)
	})
	w.expectUnheld(running, 1)

	held := w.Job("held", "q", 1)
	w.ask(holding, door, func() { w.UntilHeld(held, true) })
	w.Create(held)
	if !*held.Spec.Suspend || held.Generation != 1 {
		t.Errorf("it was made with suspend %t, generation %d", *held.Spec.Suspend, held.Generation)
	}
	w.UntilJob("held", "runs", harness.Running(1))
	w.expectUnheld(running, 1)
	unlabelled := w.Job("unlabelled", "", 1)
	unlabelled.Labels = nil
	w.UntilHeld(unlabelled, false)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: muster.DefaultQueue, Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
	w.UntilHeld(unlabelled, true)
	suspended := w.Job("suspended", "", 1)
	suspended.Labels, suspended.Spec.Suspend = nil, ptr.To(true)
	w.Create(suspended)
	if mark := suspended.Annotations[muster.QueuedAnnotation]; mark != muster.QueuedItself {
		t.Errorf("a Job that is made suspended has the mark %q: its users can start it before the operator has seen it", mark)
	}

	running.End(syscall.SIGTERM)
	orphan := w.Job("orphan", "q", 1)
	w.Create(orphan)
	if *orphan.Spec.Suspend {
		t.Error("nobody was there to hold it, and it is suspended")
	}
	w.UntilPodsOf("orphan", 1)
}

// TestAStartIsRefusedWithoutMutatingPolicies: a user who may edit Jobs neither starts one that names a queue, though
// the same change removes the name, nor makes one that seems to be a JobSet's.
func TestAStartIsRefusedWithoutMutatingPolicies(t *testing.T) {
	w := newWorld(t)
	w.leaveOut()
	w.UntilHeld(w.Job("probe", "q", 1), false)
	job := w.Job("job", "q", 1)
	job.Spec.Suspend = ptr.To(true)
	w.Create(job, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "users"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ada"}}})
	config := rest.CopyConfig(w.Cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "ada"}
	ada, err := client.New(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(into *batchv1.Job, text string, options ...client.PatchOption) error {
		return ada.Patch(t.Context(), into, client.RawPatch(types.MergePatchType, []byte(text)), options...)
	}
	// The API server hears of the role and of each binding by itself.
	until := func(what string, done func() bool) {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, harness.Patience, true,
			func(context.Context) (bool, error) { return done(), nil })
		if err != nil {
			t.Fatalf("waiting until %s: %v", what, err)
		}
	}
	until("a user with the role edit may change a Job", func() bool {
		return patch(job.DeepCopy(), `{"metadata": {"annotations": {"a": "b"}}}`) == nil
	})
	const start = `{"spec": {"suspend": false}}`
	until("a start is no longer taken out of a change", func() bool {
		started := job.DeepCopy()
		return patch(started, start, client.DryRunAll) != nil || !*started.Spec.Suspend
	})
	for _, text := range []string{start, `{"metadata": {"labels": null}, "spec": {"suspend": false}}`,
		`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": ""}}, "spec": {"suspend": false}}`} {
		if err := patch(job.DeepCopy(), text); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "the queue starts this Job") {
			t.Errorf("%s: %v, want it refused, as the queue starts the Job", text, err)
		}
	}
	partly := w.Job("partly", "q", 3)
	partly.Annotations = map[string]string{muster.AskedPodsAnnotation: "3", muster.GrantedPodsAnnotation: "1"}
	partly.Spec.Parallelism, partly.Spec.ManagedBy = ptr.To[int32](1), ptr.To("example.com/nobody")
	w.Create(partly)
	const raise = `{"spec": {"parallelism": 3}}`
	until("a larger size is no longer put back", func() bool {
		raised := partly.DeepCopy()
		return patch(raised, raise, client.DryRunAll) != nil || *raised.Spec.Parallelism > 1
	})
	if err := patch(partly.DeepCopy(), raise); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "the Job has quota for 1 of the 3 pods that it asked for") {
		t.Errorf("a larger size of a Job that runs with fewer pods: %v, want it refused, and why", err)
	}
	forged := w.Job("js-w-0", "q", 1)
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "js",
		UID: "u", Controller: ptr.To(true)}}
	until("a Job that names a JobSet is no longer marked at its creation", func() bool {
		created := forged.DeepCopy()
		return ada.Create(t.Context(), created, client.DryRunAll) != nil || created.Annotations[muster.QueuedAnnotation] == ""
	})
	if err := ada.Create(t.Context(), forged); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "only the controller of JobSets") {
		t.Errorf("a Job that names a JobSet as its controller: %v, want it refused", err)
	}
}

// expectUnheld checks how many Jobs were counted that nothing held.
func (w *world) expectUnheld(running *operator.Operator, want float64) {
	w.Helper()
	if got := running.Counted(w.T, startedUnheld); got != want {
		w.Errorf("%s is %v, want %v", startedUnheld, got, want)
	}
}

// leaveOut has the policies that hold Jobs pass over the namespace, as in a cluster that does not serve them.
func (w *world) leaveOut() {
	w.Helper()
	for _, name := range []string{"muster-job-hold", "muster-job-hold-default", "muster-job-hold-owned",
		"muster-job-hold-waiting", "muster-job-size-limit"} {
		binding := &registration.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.Change(binding, func() {
			binding.Spec.MatchResources = &registration.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{w.Namespace}}}}}
		})
		w.Cleanup(func() {
			if err := w.Client.Patch(context.Background(), binding,
				client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"matchResources": null}}`))); err != nil {
				w.Errorf("taking the namespace in again: %v", err)
			}
		})
	}
}

// door is where an operator answers the API server's questions.
type door struct {
	// flags have an operator answer there.
	flags     []string
	address   string
	authority []byte
}

// newDoor makes what is shown there, and finds an address.
func (w *world) newDoor() door {
	w.Helper()
	certificates, authority := w.certificates()
	address := operator.FreeAddress(w.T)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		w.Fatal(err)
	}
	return door{flags: []string{"--webhook-port=" + port, "--webhook-cert-dir=" + certificates},
		address: "https://" + address, authority: authority}
}

// certificates makes a folder with what the webhook shows, and gives the authority for it.
func (w *world) certificates() (folder string, authority []byte) {
	w.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		w.Fatal(err)
	}
	folder = w.TempDir()
	for name, content := range map[string][]byte{"tls.crt": chain, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			w.Fatal(err)
		}
	}
	return folder, chain
}

// ask has the API server ask what a file of the chart has it ask, for the namespace alone, at the door rather than by a
// Service. It returns when heard does, as of Enforce.
func (w *world) ask(file string, at door, heard func()) {
	w.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	var how registration.MutatingWebhook
	if err := yaml.UnmarshalStrict(text, &how); err != nil {
		w.Fatal(err)
	}
	how.ClientConfig = registration.WebhookClientConfig{URL: ptr.To(at.address + *how.ClientConfig.Service.Path),
		CABundle: at.authority}
	how.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}}
	w.Enforce(heard,
		&registration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(filepath.Base(file),
			".yaml")}, Webhooks: []registration.MutatingWebhook{how}})
}
