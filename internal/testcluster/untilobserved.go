package testcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience bounds the wait for the API server to take an object into account, on a machine that is busy with other
// tests.
const patience = 4 * time.Minute

// UntilObserved waits until the API server takes the current version of the objects into account. It reads priority
// classes, runtime classes, limit ranges, quotas, RBAC rules and CRDs by watches of its own, so that a request right
// after one of them was written may be handled without it. UntilObserved detects this by dry runs and reviews. It fails
// the test for a limit or quota that these cannot show. Objects of other kinds either take effect at once, or need a
// wait by the test itself, such as World.Enforce of the scenarios.
func (c *Cluster) UntilObserved(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		shows := c.shows(o)
		if shows == nil {
			continue
		}
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience,
			true, func(ctx context.Context) (bool, error) {
				last = shows(ctx)
				return last == nil, nil
			})
		if err != nil {
			t.Fatalf("waiting until the API server takes %T %s into account: %v: %v", o, o.GetName(), err, last)
		}
	}
}

// shows returns a function that fails as long as the API server does not take the object into account; nil if there is
// nothing to wait for.
func (c *Cluster) shows(o client.Object) func(context.Context) error {
	switch o := o.(type) {
	case *corev1.Namespace:
		return func(ctx context.Context) error {
			return c.Client.Get(ctx, client.ObjectKey{Namespace: o.Name, Name: "default"}, &corev1.ServiceAccount{})
		}
	case *schedulingv1.PriorityClass:
		return func(ctx context.Context) error { return c.givesPriority(ctx, o) }
	case *nodev1.RuntimeClass:
		return func(ctx context.Context) error { return c.givesOverhead(ctx, o) }
	case *corev1.LimitRange:
		return func(ctx context.Context) error { return c.limits(ctx, o) }
	case *corev1.ResourceQuota:
		return func(ctx context.Context) error { return c.holdsTo(ctx, o) }
	case *rbacv1.ClusterRoleBinding:
		return func(ctx context.Context) error { return c.grants(ctx, "", o.RoleRef, o.Subjects) }
	case *rbacv1.RoleBinding:
		return func(ctx context.Context) error { return c.grants(ctx, o.Namespace, o.RoleRef, o.Subjects) }
	}
	if o.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
		return func(ctx context.Context) error { return c.serves(ctx, o) }
	}
	return nil
}

// try creates a pod in a dry run, and returns the result.
func (c *Cluster) try(ctx context.Context, namespace string, edit func(*corev1.PodSpec)) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probe},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/probe"}}}}
	edit(&pod.Spec)
	return pod, c.Client.Create(ctx, pod, client.DryRunAll)
}

func (c *Cluster) givesPriority(ctx context.Context, class *schedulingv1.PriorityClass) error {
	pod, err := c.try(ctx, metav1.NamespaceDefault, func(spec *corev1.PodSpec) { spec.PriorityClassName = class.Name })
	if err == nil && (pod.Spec.Priority == nil || *pod.Spec.Priority != class.Value) {
		err = fmt.Errorf("a pod of it gets the priority %v", pod.Spec.Priority)
	}
	return err
}

func (c *Cluster) givesOverhead(ctx context.Context, class *nodev1.RuntimeClass) error {
	var want corev1.ResourceList
	if class.Overhead != nil {
		want = class.Overhead.PodFixed
	}
	pod, err := c.try(ctx, metav1.NamespaceDefault, func(spec *corev1.PodSpec) { spec.RuntimeClassName = &class.Name })
	if err == nil && !equality.Semantic.DeepEqual(pod.Spec.Overhead, want) {
		err = fmt.Errorf("a pod of it gets the overhead %v", pod.Spec.Overhead)
	}
	return err
}

// limits tries, for each limit, a pod at the maximum and one above it.
func (c *Cluster) limits(ctx context.Context, limits *corev1.LimitRange) error {
	for _, item := range limits.Spec.Limits {
		if len(item.Max) == 0 {
			return fmt.Errorf("nothing shows a limit without a maximum: %+v", item)
		}
		asks := func(more int64) error {
			amounts := item.Max.DeepCopy()
			for name, amount := range amounts {
				amount.Add(*resource.NewQuantity(more, amount.Format))
				amounts[name] = amount
			}
			_, err := c.try(ctx, limits.Namespace, func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
			})
			return err
		}
		if err := asks(0); err != nil {
			return err
		}
		if asks(1) == nil {
			return fmt.Errorf("a pod of more than %v is taken", item.Max)
		}
	}
	return nil
}

// holdsTo tries, for each resource of which the quota allows none, an object that needs it.
func (c *Cluster) holdsTo(ctx context.Context, quota *corev1.ResourceQuota) error {
	tries := map[corev1.ResourceName]func() error{
		corev1.ResourcePods: func() error {
			_, err := c.try(ctx, quota.Namespace, func(*corev1.PodSpec) {})
			return err
		},
		corev1.ResourceSecrets: func() error {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: quota.Namespace, Name: probe}}
			return c.Client.Create(ctx, secret, client.DryRunAll)
		},
	}
	for name, try := range tries {
		if hard, is := quota.Spec.Hard[name]; !is || !hard.IsZero() {
			continue
		}
		switch err := try(); {
		case err == nil:
			return fmt.Errorf("one of its %s is taken", name)
		case !strings.Contains(err.Error(), "exceeded quota: "+quota.Name):
			return err
		}
		return nil
	}
	return errors.New("nothing shows a quota that allows some pods and some secrets")
}

// grants checks each right of the role for each subject.
func (c *Cluster) grants(ctx context.Context, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) error {
	rules, err := c.rules(ctx, namespace, ref)
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		return fmt.Errorf("there are no rights in %s %s", ref.Kind, ref.Name)
	}
	for _, subject := range subjects {
		for _, right := range rights(namespace, rules) {
			switch subject.Kind {
			case rbacv1.UserKind:
				right.User = subject.Name
			case rbacv1.GroupKind:
				right.User, right.Groups = probe, []string{subject.Name}
			case rbacv1.ServiceAccountKind:
				right.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
			}
			review := &authorizationv1.SubjectAccessReview{Spec: right}
			if err := c.Client.Create(ctx, review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				return fmt.Errorf("%s may not yet %+v%+v", right.User, right.ResourceAttributes, right.NonResourceAttributes)
			}
		}
	}
	return nil
}

// rules returns the present rules of the role.
func (c *Cluster) rules(ctx context.Context, namespace string, ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "Role" {
		var role rbacv1.Role
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &role)
		return role.Rules, err
	}
	var role rbacv1.ClusterRole
	err := c.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, &role)
	return role.Rules, err
}

// rights returns access reviews for what the rules allow: the first verb on each resource and each path of each rule.
func rights(namespace string, rules []rbacv1.PolicyRule) (questions []authorizationv1.SubjectAccessReviewSpec) {
	for _, rule := range rules {
		for _, path := range rule.NonResourceURLs {
			questions = append(questions, authorizationv1.SubjectAccessReviewSpec{
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: rule.Verbs[0]}})
		}
		for _, full := range rule.Resources {
			of, sub, _ := strings.Cut(full, "/")
			for _, name := range slices.Concat(rule.ResourceNames, []string{""})[:max(1, len(rule.ResourceNames))] {
				questions = append(questions,
					authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Group: rule.APIGroups[0], Resource: of, Subresource: sub, Name: name, Verb: rule.Verbs[0]}})
			}
		}
	}
	return questions
}

// serves lists the objects of a CRD's kind.
func (c *Cluster) serves(ctx context.Context, definition client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		return err
	}
	group, _, _ := unstructured.NestedString(fields, "spec", "group")
	kind, _, _ := unstructured.NestedString(fields, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(fields, "spec", "versions")
	for _, version := range versions {
		version, is := version.(map[string]any)
		if !is || version["served"] != true {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(fmt.Sprintf("%s/%v", group, version["name"]))
		list.SetKind(kind + "List")
		if err := c.Client.List(ctx, list, client.Limit(1)); err != nil {
			return err
		}
	}
	return nil
}
