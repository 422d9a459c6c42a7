package chart

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

const (
	account     = "system:serviceaccount:lattice:lattice-operator"
	newerPolicy = "muster-workload-trusted"
	olderField  = "older"
)

// older returns a chart that lacks a policy and a value of the current one, and whose definitions have an additional
// field.
func older(t *testing.T) *helmchart.Chart {
	t.Helper()
	c := load(t)
	c.Metadata.Version, c.Metadata.AppVersion = "0.0.1", "0.0.1"
	c.Files = slices.DeleteFunc(c.Files,
		func(f *helmchart.File) bool { return f.Name == "policies/workload-trusted.yaml" })
	for _, f := range c.Files {
		if strings.HasPrefix(f.Name, "apis/") {
			f.Data = bytes.ReplaceAll(f.Data, []byte("\n        properties:\n"),
				[]byte("\n        properties:\n          "+olderField+": {type: string}\n"))
		}
	}
	c.Templates = slices.DeleteFunc(c.Templates,
		func(f *helmchart.File) bool { return f.Name == "templates/network.yaml" })
	delete(c.Values, "networkPolicy")
	c.Schema = nil
	return c
}

// TestJobsKeepRunningThroughUpgradeRollbackAndReinstallation runs the operator with the service account and rights of
// each chart. Running and pending jobs must keep their pods and Workloads, and new jobs must run after each change.
func TestJobsKeepRunningThroughUpgradeRollbackAndReinstallation(t *testing.T) {
	h := newHelm(t)
	if _, err := h.installer().Run(older(t), nil); err != nil {
		t.Fatalf("helm install: %v", err)
	}
	w := harness.New(t)
	o := startOperator(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("8")})
	w.Create(w.Job("runs", "q", 2))
	w.UntilWorkloadOf("runs", "runs", harness.Runs)
	w.Create(w.Job("waits", "q", 7))
	w.UntilWorkloadOf("waits", "has a condition", func(o *kueue.Workload) bool { return len(o.Status.Conditions) > 0 })
	before := uidsOf(w)
	if !isOlder(t) || hasPolicy(t) {
		t.Fatal("the definitions or policies are not those of the older chart after its installation")
	}

	after := func(what string, wantOlder bool, change func()) {
		t.Helper()
		o.End(syscall.SIGTERM)
		change()
		if isOlder(t) != wantOlder || hasPolicy(t) == wantOlder {
			t.Errorf("after the %s: the older definitions are installed = %t, want %t; the newer policy exists = %t, want %t",
				what, isOlder(t), wantOlder, hasPolicy(t), !wantOlder)
		}
		o = startOperator(t)
		w.Create(w.Job("after-"+what, "q", 1))
		w.UntilWorkloadOf("after-"+what, "runs", harness.Runs)
		if got := uidsOf(w); !maps.Equal(before, got) {
			t.Errorf("pods and Workloads after the %s are\n%v\nwant those before it\n%v", what, got, before)
		}
	}
	after("upgrade", false, func() {
		h.upgrade(values{"replicaCount": 3})
	})
	after("rollback", true, func() {
		if err := action.NewRollback(h.config).Run(name); err != nil {
			t.Fatalf("helm rollback: %v", err)
		}
	})
	after("reinstallation", false, func() {
		h.uninstall()
		// The policy that suspends batch Jobs is gone, so that this one starts without quota.
		w.UntilHeld(w.Job("between", "q", 1), false)
		w.Create(w.Job("between", "q", 1))
		w.UntilJob("between", "runs without quota", harness.Running(1))
		if _, err := h.installer().Run(load(t), nil); err != nil {
			t.Fatalf("helm install after helm uninstall: %v", err)
		}
	})
	w.UntilWorkloadOf("between", "runs", harness.Runs)
}

// startOperator starts the operator with the chart's service account.
func startOperator(t *testing.T) *operator.Operator {
	t.Helper()
	o := operator.StartAs(t, "../../bin/muster-operator", testcluster.Get(t), account,
		"--leader-election-namespace", namespace)
	o.AwaitReady(t)
	return o
}

// uidsOf returns the UIDs that no change of the release may change: those of the running job's pods, and of both
// Workloads, whose keys include when the admitted one was admitted.
func uidsOf(w *harness.World) map[string]types.UID {
	w.Helper()
	out := map[string]types.UID{}
	for _, pod := range w.UntilPodsOf("runs", 2) {
		out["pod "+pod.Name] = pod.UID
	}
	for _, job := range []string{"runs", "waits"} {
		o := w.UntilWorkloadOf(job, "exists", func(*kueue.Workload) bool { return true })
		admitted := "pending"
		for _, c := range o.Status.Conditions {
			if c.Type == kueue.WorkloadAdmitted && c.Status == metav1.ConditionTrue {
				admitted = "admitted at " + c.LastTransitionTime.UTC().String()
			}
		}
		out["workload of "+job+", "+admitted] = o.UID
	}
	return out
}

// isOlder reports whether the definitions are those of the older chart. The test fails if only some are.
func isOlder(t *testing.T) bool {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := definitionClient(t).List(t.Context(), &list); err != nil || len(list.Items) < 10 {
		t.Fatalf("there are %d definitions, want at least 10 (%v)", len(list.Items), err)
	}
	older := 0
	for _, definition := range list.Items {
		if _, has := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[olderField]; has {
			older++
		}
	}
	if older != 0 && older != len(list.Items) {
		t.Fatalf("%d of %d definitions are the older ones, want all or none", older, len(list.Items))
	}
	return older > 0
}

// hasPolicy reports whether the policy exists that only the current chart has.
func hasPolicy(t *testing.T) bool {
	t.Helper()
	err := definitionClient(t).Get(t.Context(), client.ObjectKey{Name: newerPolicy},
		&admissionv1.ValidatingAdmissionPolicy{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// TestEverythingIsRemovedWhileTheOperatorRuns follows docs/operate/install.md: the definitions are deleted first, with
// jobs that run and jobs that wait, because only the operator removes the finalizers of what is in use.
func TestEverythingIsRemovedWhileTheOperatorRuns(t *testing.T) {
	h := newHelm(t)
	h.install(nil)
	w := harness.New(t)
	o := startOperator(t)
	defer o.End(syscall.SIGTERM)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("8")})
	w.Create(w.Job("runs", "q", 2))
	w.UntilWorkloadOf("runs", "runs", harness.Runs)
	w.Create(w.Job("waits", "q", 7))
	w.UntilWorkloadOf("waits", "waits", func(o *kueue.Workload) bool { return len(o.Status.Conditions) > 0 })

	// One at a time, as kubectl does: the API server deletes a collection of definitions without their objects, which
	// would be there again with the next installation.
	c := definitionClient(t)
	var left apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(t.Context(), &left, client.MatchingLabels{"muster.dev/served": "true"}); err != nil {
		t.Fatal(err)
	}
	for i := range left.Items {
		if err := c.Delete(t.Context(), &left.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &left)
		return len(left.Items) == 0, err
	})
	if err != nil {
		t.Fatalf("waiting until all definitions are gone: %v; %d are left", err, len(left.Items))
	}
	// Helm deletes the operator's roles with its Deployment. Here the operator ends first: what it may not list in the
	// moment between would count as a right that the chart forgot.
	o.End(syscall.SIGTERM)
	h.uninstall()

	h.install(nil)
	served, cancelServed := context.WithTimeout(t.Context(), harness.Patience)
	defer cancelServed()
	err = wait.PollUntilContextCancel(served, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, list := range finalizedKinds() {
			if err := w.Client.List(ctx, list); err != nil {
				return false, client.IgnoreNotFound(err)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("waiting until the new definitions are served: %v", err)
	}
	for _, object := range finalized(t) {
		t.Errorf("%T %s is there again after the removal and a new installation", object, object.GetName())
	}
}
