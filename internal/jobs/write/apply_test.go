package write

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/musterhq/muster/api/muster"
)

func TestApplyRefusesObjectsOfOtherOwners(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	account := func(name string, owner types.UID) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		if owner != "" {
			a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: string(owner), UID: owner,
				Controller: ptr.To(true)}}
		}
		return a
	}
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job, account("ours", "job"),
		account("theirs", "another"), account("free", "")).Build()
	x := NewExecutor(api, &fakeRecorder{})
	for name, taken := range map[string]bool{"new": false, "ours": false, "theirs": true, "free": true} {
		wanted := account(name, "job")
		wanted.Labels = map[string]string{"applied": "yes"}
		err := x.Run(t.Context(), job, Batch{Writes: []Write{Apply(wanted, "tester")}})
		var nameTaken *NameTakenError
		if errors.As(err, &nameTaken) != taken || err != nil && !taken {
			t.Errorf("%s: error %v, want that the name is taken: %v", name, err, taken)
		}
		found := account(name, "")
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil ||
			(found.Labels["applied"] == "yes") == taken {
			t.Errorf("%s: error %v, labels %v, want it applied: %v", name, err, found.Labels, !taken)
		}
	}
}

// TestApplyDoesNotForceFieldsOfObjectsWithoutController checks that a volume claim created by a user keeps its size,
// while one that jobs applied grows for a job that requests more.
func TestApplyDoesNotForceFieldsOfObjectsWithoutController(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job"}}
	claim := func(name, size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Spec: corev1.PersistentVolumeClaimSpec{
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	if err := api.Create(t.Context(), claim("by-hand", "1Gi"), client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, size, want string
		refused          bool
	}{
		{"by-hand", "10Ti", "1Gi", true},
		{"by-hand", "1Gi", "1Gi", false},
		{"by-jobs", "1Gi", "1Gi", false},
		{"by-jobs", "2Gi", "2Gi", false},
	} {
		err := NewExecutor(api, &fakeRecorder{}).Run(t.Context(), job,
			Batch{Writes: []Write{Apply(claim(step.name, step.size), "tester")}})
		if (err != nil) != step.refused {
			t.Errorf("%+v: error %v", step, err)
		}
		var now corev1.PersistentVolumeClaim
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: step.name}, &now); err != nil {
			t.Fatal(err)
		}
		if got := now.Spec.Resources.Requests.Storage().String(); got != step.want {
			t.Errorf("%+v: the claim requests %s", step, got)
		}
	}
}

// TestApplyRemovesFieldsThatAreNotAppliedAnyMore checks an object that Apply created by a single create request: it is
// later updated as if it had been applied from the beginning. Fields of other managers stay.
func TestApplyRemovesFieldsThatAreNotAppliedAnyMore(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job"}}
	var requests []string
	note := func(verb string) { requests = append(requests, verb) }
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build(),
		interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				note("get")
				return c.Get(ctx, key, o, options...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				note("create")
				return c.Create(ctx, o, options...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
				options ...client.ApplyOption) error {
				note("apply")
				return c.Apply(ctx, o, options...)
			},
		})
	configMap := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: "ns",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, corev1.SchemeGroupVersion.WithKind("Pod"))}},
			Data: data}
	}
	apply := func(data map[string]string) (now corev1.ConfigMap) {
		t.Helper()
		if err := NewExecutor(api, &fakeRecorder{}).Run(t.Context(), job,
			Batch{Writes: []Write{Apply(configMap(data), "tester")}}); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, "|")
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(configMap(nil)), &now); err != nil {
			t.Fatal(err)
		}
		requests = requests[:len(requests)-1]
		return now
	}
	theirs := apply(map[string]string{"kept": "1", "dropped": "1"})
	if got := strings.Join(requests, " "); got != "create |" {
		t.Errorf("a missing object took the requests %q, want one create", got)
	}
	theirs.Data["added"] = "by another"
	if err := api.Update(t.Context(), &theirs, client.FieldOwner("another")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		now := apply(map[string]string{"kept": "2"})
		if want := map[string]string{"kept": "2", "added": "by another"}; !maps.Equal(now.Data, want) {
			t.Errorf("the ConfigMap holds %v, want %v", now.Data, want)
		}
	}
}

func TestStatusOnErrorReplacesTheStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job"}}
	taken := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: "ns"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job, taken).WithStatusSubresource(job).Build()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	wanted := taken.DeepCopy()
	wanted.ResourceVersion = ""
	wanted.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "job", UID: "job",
		Controller: ptr.To(true)}}
	events := &fakeRecorder{}
	plan := Batch{Writes: []Write{Apply(wanted, "tester")}, Status: job, Events: []Event{Normal("Done", "done")},
		StatusOnError: func(err error) (client.Object, Event) {
			failed := job.DeepCopy()
			failed.Status.Message = err.Error()
			return failed, Warning("Failed", err.Error())
		}}
	if err := NewExecutor(api, events).Run(t.Context(), job, plan); err == nil {
		t.Error("Run returned no error, so the plan would not be retried")
	}
	var now corev1.Pod
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &now); err != nil || now.Status.Message == "" {
		t.Errorf("status = %+v (error %v), want the message of StatusOnError", now.Status, err)
	}
	if len(events.events) != 1 || events.events[0][:14] != "Warning Failed" {
		t.Errorf("events = %v, want only that of StatusOnError", events.events)
	}
	// Removing an object that does not exist is no error.
	if err := NewExecutor(api, events).Run(t.Context(), job,
		Batch{Writes: []Write{Remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gone", Namespace: "ns"}})}}); err !=
		nil {
		t.Error(err)
	}
}

func TestRemoveDeletesOnlyObjectsThatTheJobControls(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job"}}
	account := func(name string, owner types.UID) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name + "-uid")}}
		if owner != "" {
			a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "job", UID: owner,
				Controller: ptr.To(true)}}
		}
		return a
	}
	// The successor belongs to a later job of the same name.
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job, account("ours", "job"),
		account("successor", "later"), account("free", "")).Build()
	for name, kept := range map[string]bool{"ours": false, "successor": true, "free": true, "none": false} {
		if err := NewExecutor(api, &fakeRecorder{}).Run(t.Context(), job,
			Batch{Writes: []Write{Remove(account(name, ""))}}); err != nil {
			t.Errorf("%s: error %v", name, err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(account(name, "")),
			&corev1.ServiceAccount{}); (err == nil) != kept {
			t.Errorf("%s: error %v, want the account kept: %v", name, err, kept)
		}
	}
	api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(job, account("a", "job"), account("b", "job"),
		account("theirs", "later"), account("free", "")).Build()
	all := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	if err := NewExecutor(api, &fakeRecorder{}).Run(t.Context(), job, Batch{Writes: []Write{RemoveAll(all)}}); err != nil {
		t.Error(err)
	}
	var left corev1.ServiceAccountList
	if err := api.List(t.Context(), &left); err != nil || len(left.Items) != 2 {
		t.Errorf("error %v, %d accounts are left, want the 2 of others: %v", err, len(left.Items), left.Items)
	}
}

// TestAClaimIsUsedOnlyByThatForWhichItWasMade: names of claims are joined with -, and two volumes that share one would
// write over each other's data. A claim that does not say for what it was made is anybody's, as it always was.
func TestAClaimIsUsedOnlyByThatForWhichItWasMade(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job"}}
	claim := func(name, madeFor, size string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Spec: corev1.PersistentVolumeClaimSpec{
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}}
		if madeFor != "" {
			c.Annotations = map[string]string{muster.MadeForAnnotation: madeFor}
		}
		return c
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	x := NewExecutor(api, &fakeRecorder{})
	for _, step := range []struct {
		name, madeFor, size, refused string
		want                         string // for what the claim says it was made
	}{
		{name: "a-b-c-d", madeFor: "a/b/c-d", size: "1Gi", want: "a/b/c-d"},
		{name: "a-b-c-d", madeFor: "a-b/c/d", size: "1Gi", want: "a/b/c-d",
			refused: "the name a-b-c-d is taken by a PersistentVolumeClaim that was made for a/b/c-d: give the job, or what needs it, another name, or delete that PersistentVolumeClaim"},
		{name: "a-b-c-d", madeFor: "shared/b-c-d", size: "1Gi", want: "a/b/c-d", refused: "was made for a/b/c-d"},
		{name: "a-b-c-d", madeFor: "a/b/c-d", size: "2Gi", want: "a/b/c-d"}, // the next job of that name grows it
		{name: "a-b-c-d", madeFor: "a/b/c-d", size: "2Gi", want: "a/b/c-d"},
		{name: "before", size: "1Gi"},
		{name: "before", madeFor: "a/b/c-d", size: "1Gi"},
		{name: "before", madeFor: "a-b/c/d", size: "2Gi"},
	} {
		err := x.Run(t.Context(), job, Batch{Writes: []Write{Apply(claim(step.name, step.madeFor, step.size), "tester")}})
		if (err != nil) != (step.refused != "") ||
			err != nil && (!strings.Contains(err.Error(), step.refused) || !IsRefused(err)) {
			t.Errorf("%+v: error %v", step, err)
		}
		var got corev1.PersistentVolumeClaim
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: step.name}, &got); err != nil {
			t.Fatal(err)
		}
		if size := got.Spec.Resources.Requests[corev1.ResourceStorage]; madeFor(&got) != step.want ||
			step.refused == "" && size.String() != step.size {
			t.Errorf("%+v: the claim was made for %q, with %s", step, madeFor(&got), size.String())
		}
	}
}
