package validation

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Users who are no administrators.
const (
	// reporter writes Workloads and their status, as a custom integration does that runs jobs of its own kind.
	reporter = "reporter@example.com"
	// checker is a reporter, and the controller of the AdmissionCheck a.
	checker = "checker@example.com"
	// mender is a reporter, and was given what it takes to mend an admission by hand.
	mender = "mender@example.com"
	// editor makes and changes jobs, and may change Workloads: the rights of the role edit.
	editor = "editor@example.com"
	// queuer makes and changes LocalQueues, as the administrator of a namespace does.
	queuer = "queuer@example.com"
	// sharer is a queuer who may choose the weights of LocalQueues.
	sharer = "sharer@example.com"
	// maker makes and changes jobs, and nothing else.
	maker = "maker@example.com"
	// tasker is a maker who may make service accounts.
	tasker = "tasker@example.com"
	// owner is a maker who may make what jobs are made of.
	owner = "owner@example.com"
)

// rightsOf are those of users who are no administrators. All others are.
var rightsOf = func() map[string][]rbacv1.PolicyRule {
	may := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	const queues = "kueue.x-k8s.io"
	reports := may(queues, []string{"workloads", "workloads/status"}, "get", "create", "update")
	jobs := []rbacv1.PolicyRule{may("jobset.x-k8s.io", []string{"jobsets"}, "get", "create", "update"),
		may("batch", []string{"jobs"}, "get", "create", "update"), may("batch.volcano.sh", []string{"jobs"}, "get", "create",
			"update"), may("lattice.dev", []string{"latticejobs"}, "get", "create", "update")}
	localQueues := may(queues, []string{"localqueues"}, "get", "create", "update")
	check := may(queues, []string{"admissionchecks/status"}, "update")
	check.ResourceNames = []string{"a"}
	return map[string][]rbacv1.PolicyRule{
		reporter: {reports},
		checker:  {reports, check},
		mender:   {reports, may(queues, []string{"workloads/admission"}, "update")},
		editor:   append(jobs[:len(jobs):len(jobs)], may(queues, []string{"workloads"}, "get", "update", "patch")),
		queuer:   {localQueues},
		sharer:   {localQueues, may(queues, []string{"localqueues/fairsharing"}, "update")},
		maker:    jobs,
		tasker:   append([]rbacv1.PolicyRule{may("", []string{"serviceaccounts"}, "create")}, jobs...),
		owner: append([]rbacv1.PolicyRule{may("", []string{"persistentvolumeclaims", "serviceaccounts"}, "create"),
			may("external-secrets.io", []string{"externalsecrets"}, "create")}, jobs...),
	}
}()

// grant gives the users their rights, and returns when the API server heeds them.
func (s *server) grant(t *testing.T) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	for user, rules := range rightsOf {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
		if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for user, rules := range rightsOf {
		awaitRight(t, client, user, rules[0])
	}
}

func awaitRight(t *testing.T, client kubernetes.Interface, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: rule.APIGroups[0],
			Resource: rule.Resources[0]}}}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("%s never got the rights: %v", user, err)
	}
}
