// Package rules_test checks that the oldest Kubernetes version that the chart supports accepts the CRDs and policies.
package rules_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	policyinstall "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

// The chart is in another module, so that Go's test cache does not notice its changes: run with -count=1, as make test
// does.
const chart = "../../../charts/muster"

// An API server accepts only expressions that the previous version supports, to which the cluster may be rolled back:
// 1.30 accepts those of 1.29.
var understood = version.MajorMinor(1, 29)

// codecs reads manifests as the API server does, with defaults.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	crdinstall.Install(scheme)
	policyinstall.Install(scheme)
	return serializer.NewCodecFactory(scheme)
}()

func TestMain(m *testing.M) {
	kube := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	kube.(basecompatibility.MutableEffectiveVersion).SetMinCompatibilityVersion(understood)
	os.Exit(m.Run())
}

// TestOldestKubernetesAcceptsEveryCRD: the API server's validation compiles every rule and estimates its cost, alone
// and together with the others of its CRD.
func TestOldestKubernetesAcceptsEveryCRD(t *testing.T) {
	each(t, "apis", func(t *testing.T, object runtime.Object) field.ErrorList {
		definition, is := object.(*apiextensions.CustomResourceDefinition)
		if !is {
			t.Fatalf("%T is not a definition", object)
		}
		// The API server sets this when it accepts a CRD.
		definition.Status.StoredVersions = nil
		for _, v := range definition.Spec.Versions {
			if v.Storage {
				definition.Status.StoredVersions = []string{v.Name}
			}
		}
		return crdvalidation.ValidateCustomResourceDefinition(context.Background(), definition)
	})
}

func TestOldestKubernetesAcceptsEveryPolicy(t *testing.T) {
	each(t, "policies", func(t *testing.T, object runtime.Object) field.ErrorList {
		switch object := object.(type) {
		case *admissionregistration.ValidatingAdmissionPolicy:
			return policyvalidation.ValidateValidatingAdmissionPolicy(object)
		case *admissionregistration.ValidatingAdmissionPolicyBinding:
			return policyvalidation.ValidateValidatingAdmissionPolicyBinding(object)
		// The oldest Kubernetes does not have this kind, and the chart omits these objects there. Versions that have it
		// support more.
		case *admissionregistration.MutatingAdmissionPolicy:
			return policyvalidation.ValidateMutatingAdmissionPolicy(object)
		case *admissionregistration.MutatingAdmissionPolicyBinding:
			return policyvalidation.ValidateMutatingAdmissionPolicyBinding(object)
		default:
			t.Fatalf("%T is not a policy", object)
			return nil
		}
	})
}

// TestLaterFeaturesAreRejected: a CRD or policy that uses later features is rejected; otherwise the tests above would
// prove nothing.
func TestLaterFeaturesAreRejected(t *testing.T) {
	if got := environment.DefaultCompatibilityVersion(); !got.EqualTo(understood) {
		t.Fatalf("expressions are checked for Kubernetes %s, want %s", got, understood)
	}
	for _, later := range []string{
		"[[1], [2]].flatten().size() == 2",
		"[1, 2].all(i, x, i < x)",
		"!format.dns1123Label().validate('a').hasValue()",
	} {
		policy := &admissionregistration.ValidatingAdmissionPolicy{Spec: admissionregistration.ValidatingAdmissionPolicySpec{
			Validations: []admissionregistration.Validation{{Expression: later}},
		}}
		errs := policyvalidation.ValidateValidatingAdmissionPolicy(policy).ToAggregate()
		if errs == nil || !strings.Contains(errs.Error(), "compilation failed") {
			t.Errorf("%s: got errors %v, want a failed compilation", later, errs)
		}
	}
}

// each validates all objects in a directory of the chart.
func each(t *testing.T, directory string, validate func(*testing.T, runtime.Object) field.ErrorList) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chart, directory, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", directory, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, document := range strings.Split(string(data), "\n---\n") {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(path), i), func(t *testing.T) {
				object, _, err := codecs.UniversalDecoder(apiextensions.SchemeGroupVersion,
					internal).Decode([]byte(document), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range validate(t, object) {
					t.Error(err)
				}
			})
		}
	}
}

// internal is the version in which policies are validated.
var internal = admissionregistration.SchemeGroupVersion
