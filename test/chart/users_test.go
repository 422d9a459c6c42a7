package chart

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestTheClustersUserRolesIncludeJobs: in the namespace in which he holds it, as docs/install.md has it.
func TestTheClustersUserRolesIncludeJobs(t *testing.T) {
	h := newHelm(t)
	h.install(nil)
	cluster := testcluster.Get(t)
	in := cluster.Namespace(t)
	for _, role := range []string{"view", "edit", "admin"} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}}}
		if err := cluster.Client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	may := func(user, verb, group, resource, subresource, namespace string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace}}}
		if err := cluster.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	jobs := map[string]string{"jobsets": "jobset.x-k8s.io", "genericjobs": "batch.tensorstack.dev", "latticejobs": "lattice.dev", "jobs": "batch.volcano.sh", "trainingjobs": "breezeml.ai"}
	const queues = "kueue.x-k8s.io"
	for user, awaited := range map[string][2]string{"view": {"list", "jobsets"}, "edit": {"create", "jobsets"}, "admin": {"create", "workloads"}} {
		group := queues
		if awaited[1] == "jobsets" {
			group = jobs["jobsets"]
		}
		// Roles are put together by a controller.
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) { return may(user, awaited[0], group, awaited[1], "", in), nil })
		cancel()
		if err != nil {
			t.Fatalf("%s may never %s %s", user, awaited[0], awaited[1])
		}
	}
	for _, c := range []struct {
		verb, group, resource, subresource string
		who                                []string
	}{
		{"list", queues, "workloads", "", []string{"view", "edit", "admin"}},
		{"get", queues, "localqueues", "", []string{"view", "edit", "admin"}},
		{"create", queues, "workloads", "", []string{"admin"}},
		{"update", queues, "localqueues", "", []string{"admin"}},
		{"update", queues, "workloads", "status", nil},
		{"update", queues, "workloads", "admission", nil},
		{"create", queues, "clusterqueues", "", nil},
		{"update", queues, "admissionchecks", "status", nil},
	} {
		for _, user := range []string{"view", "edit", "admin"} {
			want := false
			for _, one := range c.who {
				want = want || one == user
			}
			if got := may(user, c.verb, c.group, c.resource, c.subresource, in); got != want {
				t.Errorf("%s may %s %s %s: %t, want %t", user, c.verb, c.resource, c.subresource, got, want)
			}
			if may(user, c.verb, c.group, c.resource, c.subresource, "default") {
				t.Errorf("%s may %s %s in another namespace", user, c.verb, c.resource)
			}
		}
	}
	for resource, group := range jobs {
		for _, user := range []string{"view", "edit", "admin"} {
			for verb, want := range map[string]bool{"get": true, "watch": true, "create": user != "view", "patch": user != "view", "delete": user != "view"} {
				if got := may(user, verb, group, resource, "", in); got != want {
					t.Errorf("%s may %s %s: %t, want %t", user, verb, resource, got, want)
				}
			}
			if may(user, "update", group, resource, "status", in) {
				t.Errorf("%s may say how %s are", user, resource)
			}
		}
	}
}
