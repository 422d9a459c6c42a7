package install_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{NoAPIs: true}) }

// counting returns a copy of a config that counts write requests.
func counting(config *rest.Config) (*rest.Config, *atomic.Int64) {
	var writes atomic.Int64
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return counted, &writes
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestApplyServesTheAPIsAndWritesOnlyWhatDiffers(t *testing.T) {
	cluster := testcluster.Get(t)
	config, writes := counting(cluster.Config)
	apply := func(options install.Options) int64 {
		t.Helper()
		writes.Store(0)
		if err := install.Apply(t.Context(), config, options); err != nil {
			t.Fatal(err)
		}
		return writes.Load()
	}
	direct := clientOf(t, cluster.Config)
	first := apply(install.Options{})
	if first == 0 {
		t.Error("the first run wrote nothing")
	}
	for _, list := range []client.ObjectList{&kueue.WorkloadList{}, &jobset.JobSetList{}} {
		if err := direct.List(t.Context(), list); err != nil {
			t.Errorf("listing right after Apply: %v", err)
		}
	}
	if again := apply(install.Options{}); again != 0 {
		t.Errorf("a second run wrote %d times, want 0", again)
	}

	t.Run("a deleted object is created again", func(t *testing.T) {
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
		binding.Name = "muster-jobset-references"
		if err := direct.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		if wrote := apply(install.Options{}); wrote != 1 {
			t.Errorf("wrote %d times, want 1", wrote)
		}
		if err := direct.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
			t.Error(err)
		}
	})

	t.Run("a changed object is restored", func(t *testing.T) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := direct.Get(t.Context(), client.ObjectKey{Name: "topologies.kueue.x-k8s.io"}, definition); err != nil {
			t.Fatal(err)
		}
		definition.Spec.Names.ShortNames = []string{"other"}
		if err := direct.Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		if wrote := apply(install.Options{}); wrote != 1 {
			t.Errorf("wrote %d times, want 1", wrote)
		}
		if err := direct.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			t.Fatal(err)
		}
		if got := definition.Spec.Names.ShortNames; len(got) != 1 || got[0] != "topo" {
			t.Errorf("short names %q, want topo", got)
		}
	})

	t.Run("fields of an older build are removed", func(t *testing.T) {
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := direct.Get(t.Context(), client.ObjectKey{Name: "muster-clusterqueue-quota"}, policy); err != nil {
			t.Fatal(err)
		}
		policy.Annotations["muster.dev/applied-hash"] = "of another content"
		if err := direct.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		if wrote := apply(install.Options{}); wrote != 1 {
			t.Errorf("wrote %d times, want 1", wrote)
		}
	})

	t.Run("another operator user is set in the policies", func(t *testing.T) {
		const user = "system:serviceaccount:elsewhere:muster"
		named := policiesThatName(t, direct, install.DefaultOperatorUser)
		if named == 0 {
			t.Fatal("no policy names the operator's user")
		}
		if wrote := apply(install.Options{OperatorUser: user}); wrote != named {
			t.Errorf("wrote %d times, want once for each of the %d policies that name the user", wrote, named)
		}
		if left := policiesThatName(t, direct, install.DefaultOperatorUser); left != 0 {
			t.Errorf("%d policies still name the former user", left)
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := direct.Get(t.Context(), client.ObjectKey{Name: "muster-workload-admission"}, policy); err != nil {
			t.Fatal(err)
		}
		validation := policy.Spec.Validations[0]
		if !strings.Contains(validation.Expression, "'"+user+"'") || !strings.Contains(validation.Message, user) {
			t.Errorf("the policy does not name %s: %+v", user, validation)
		}
	})
}

// policiesThatName returns how many admission policies of the cluster contain the name of a user.
func policiesThatName(t *testing.T, direct client.Client, user string) int64 {
	t.Helper()
	var named int64
	for _, list := range []client.ObjectList{
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.MutatingAdmissionPolicyList{},
	} {
		if err := direct.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(policy runtime.Object) error {
			text, err := json.Marshal(policy)
			if bytes.Contains(text, []byte(user)) {
				named++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return named
}

// TestPoliciesFitTheDefinitions: the API server checks the types in a policy's expressions against the definitions
// and reports mismatches.
func TestPoliciesFitTheDefinitions(t *testing.T) {
	cluster := testcluster.Get(t)
	if err := install.Apply(t.Context(), cluster.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	direct := clientOf(t, cluster.Config)
	var policies admissionv1.ValidatingAdmissionPolicyList
	checked := func(policy admissionv1.ValidatingAdmissionPolicy) bool {
		return policy.Status.ObservedGeneration == policy.Generation
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute,
		true, func(ctx context.Context) (bool, error) {
			err := direct.List(ctx, &policies)
			return err == nil && !slices.ContainsFunc(policies.Items,
				func(p admissionv1.ValidatingAdmissionPolicy) bool { return !checked(p) }), err
		})
	if err != nil {
		t.Fatalf("waiting until the policies are type-checked: %v", err)
	}
	for _, policy := range policies.Items {
		if policy.Status.TypeChecking != nil {
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", policy.Name, warning.FieldRef, warning.Warning)
			}
		}
	}
}

func TestAnOperatorUserWithQuotesIsRefused(t *testing.T) {
	err := install.Apply(t.Context(), &rest.Config{Host: "127.0.0.1:1"}, install.Options{OperatorUser: "a' || true || '"})
	if err == nil || !strings.Contains(err.Error(), "contains a quote") {
		t.Errorf("got %v, want a refusal of the quote", err)
	}
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := testcluster.Scheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
