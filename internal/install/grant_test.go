package install_test

import (
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"context"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestAUserGetsTheOperatorsRightsAndNoMore(t *testing.T) {
	cluster := testcluster.Get(t)
	direct := clientOf(t, cluster.Config)
	const user = "system:serviceaccount:rights:operator"
	to := install.Rights{User: user, Namespace: "rights", TrainingJobGroup: "training.example.com"}
	for range 2 { // granting twice is harmless
		if err := install.GrantRights(t.Context(), cluster.Config, to); err != nil {
			t.Fatal(err)
		}
	}
	may := func(verb, group, resource, namespace, name string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}}}
		if err := direct.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		// The authorizer follows through a watch.
		return may("update", "coordination.k8s.io", "leases", "rights", "muster.dev"), nil
	})
	if err != nil {
		t.Fatal("timed out waiting until the user has the rights")
	}
	for _, c := range []struct {
		verb, group, resource, namespace, name string
		want                                   bool
	}{
		{"create", "", "pods", "any", "", true},
		{"patch", "training.example.com", "trainingjobs", "any", "a", true},
		{"patch", "breezeml.ai", "trainingjobs", "any", "a", false},
		{"get", "", "secrets", "rights", "muster-rendezvous", true},
		{"list", "", "secrets", "", "", false},
		{"list", "", "configmaps", "any", "", false},
		{"update", "coordination.k8s.io", "leases", "any", "muster.dev", false},
		{"patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "a", false},
		{"delete", "", "nodes", "", "a", false},
		{"delete", "", "pods", "any", "a", true},
		{"get", "", "pods", "any", "a", false}, // the operator only lists pods
		{"patch", "", "persistentvolumeclaims", "any", "a", true},
		{"delete", "", "persistentvolumeclaims", "any", "a", false}, // they are garbage-collected with their owner
		{"create", rbacv1.GroupName, "rolebindings", "any", "", false},
		{"impersonate", "", "users", "", "a", false},
		{"create", "", "pods/exec", "any", "a", false},
	} {
		if got := may(c.verb, c.group, c.resource, c.namespace, c.name); got != c.want {
			t.Errorf("%s %s of %q %s in %q: %t, want %t", c.verb, c.resource, c.group, c.name, c.namespace, got, c.want)
		}
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rights"}}
	if err := direct.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Error(err)
	}
}

// TestTheOperatorMayLiveInANamespaceThatItReadsToo: --install-for without a namespace for the lease chooses
// kube-system, where the operator also reads the status of the cluster-autoscaler.
func TestTheOperatorMayLiveInANamespaceThatItReadsToo(t *testing.T) {
	cluster := testcluster.Get(t)
	direct := clientOf(t, cluster.Config)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := install.GrantRights(ctx, cluster.Config,
		install.Rights{User: "resident", Namespace: metav1.NamespaceSystem}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{}
	if err := direct.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "muster-operator"},
		role); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"muster.dev", "cluster-autoscaler-status"} {
		if !slices.ContainsFunc(role.Rules,
			func(r rbacv1.PolicyRule) bool { return slices.Contains(r.ResourceNames, name) }) {
			t.Errorf("the role in %s has no rule for %s: %v", metav1.NamespaceSystem, name, role.Rules)
		}
	}
}

// TestHoldersOfTheClustersRolesMayUseTheJobAPIs: the roles are made for them, and a controller of the cluster adds
// their rules to view, edit and admin.
func TestHoldersOfTheClustersRolesMayUseTheJobAPIs(t *testing.T) {
	cluster := testcluster.Get(t)
	direct := clientOf(t, cluster.Config)
	if err := install.GrantUsers(t.Context(), cluster.Config, "training.example.com"); err != nil {
		t.Fatal(err)
	}
	for name, rule := range map[string]rbacv1.PolicyRule{
		"view":  {Verbs: []string{"list"}, APIGroups: []string{"training.example.com"}, Resources: []string{"trainingjobs"}},
		"edit":  {Verbs: []string{"create"}, APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets"}},
		"admin": {Verbs: []string{"delete"}, APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"localqueues"}},
	} {
		role := &rbacv1.ClusterRole{}
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 3*time.Minute,
			true, func(ctx context.Context) (bool, error) {
				err := direct.Get(ctx, client.ObjectKey{Name: name}, role)
				return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Verbs, rule.Verbs[0]) && slices.Contains(r.APIGroups, rule.APIGroups[0]) &&
						slices.Contains(r.Resources, rule.Resources[0])
				}), client.IgnoreNotFound(err)
			})
		if err != nil {
			t.Errorf("role %s does not allow to %s %s: %v", name, rule.Verbs[0], rule.Resources[0], err)
		}
	}
}

// TestEverybodyMayReadTheConfiguration: muster explain, run by a user with no other rights, decides as the operator
// does.
func TestEverybodyMayReadTheConfiguration(t *testing.T) {
	cluster := testcluster.Get(t)
	direct := clientOf(t, cluster.Config)
	if err := install.GrantUsers(t.Context(), cluster.Config, ""); err != nil {
		t.Fatal(err)
	}
	may := func(verb, name string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "someone",
			Groups: []string{"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "configmaps",
				Namespace: config.PublishedNamespace, Name: name}}}
		if err := direct.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 3*time.Minute,
		true, func(context.Context) (bool, error) {
			return may("get", config.PublishedName), nil // the authorizer follows through a watch
		})
	if err != nil {
		t.Fatal("timed out waiting until a user may read the configuration")
	}
	if may("update", config.PublishedName) || may("get", "another") {
		t.Error("a user may do more than read the configuration")
	}
}
