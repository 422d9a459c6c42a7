package chart

import (
	"context"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestUserRolesIncludeJobs checks what users with the cluster's roles view, edit and admin in a namespace may do with
// jobs and queues there, as docs/operate/install.md lists it, and that they may do nothing elsewhere.
func TestUserRolesIncludeJobs(t *testing.T) {
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
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace}}}
		if err := cluster.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	jobs := map[string]string{"jobsets": "jobset.x-k8s.io", "genericjobs": "batch.tensorstack.dev",
		"latticejobs": "lattice.dev", "jobs": "batch.volcano.sh", "trainingjobs": "breezeml.ai"}
	const queues = "kueue.x-k8s.io"
	for user, right := range map[string][2]string{"view": {"list", "jobsets"}, "edit": {"create", "jobsets"},
		"admin": {"create", "workloads"}} {
		verb, resource, group := right[0], right[1], queues
		if resource == "jobsets" {
			group = jobs["jobsets"]
		}
		// A controller aggregates the rules of these roles.
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true,
			func(context.Context) (bool, error) { return may(user, verb, group, resource, "", in), nil })
		cancel()
		if err != nil {
			t.Fatalf("waiting until %s may %s %s: %v", user, verb, resource, err)
		}
	}
	for _, c := range []struct {
		verb, group, resource, subresource string
		users                              []string
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
			want := slices.Contains(c.users, user)
			if got := may(user, c.verb, c.group, c.resource, c.subresource, in); got != want {
				t.Errorf("%s may %s %s %s = %t, want %t", user, c.verb, c.resource, c.subresource, got, want)
			}
			if may(user, c.verb, c.group, c.resource, c.subresource, "default") {
				t.Errorf("%s may %s %s %s in another namespace", user, c.verb, c.resource, c.subresource)
			}
		}
	}
	for resource, group := range jobs {
		for _, user := range []string{"view", "edit", "admin"} {
			for verb, want := range map[string]bool{"get": true, "watch": true, "create": user != "view",
				"patch": user != "view", "delete": user != "view"} {
				if got := may(user, verb, group, resource, "", in); got != want {
					t.Errorf("%s may %s %s = %t, want %t", user, verb, resource, got, want)
				}
			}
			if may(user, "update", group, resource, "status", in) {
				t.Errorf("%s may update the status of %s", user, resource)
			}
		}
	}
}
