package install

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

const (
	// ownNamespace is the placeholder for the operator's own namespace in the generated roles.
	ownNamespace = "muster-system"

	// rightsName is the name of the operator's roles and of their bindings.
	rightsName = "muster-operator"
)

// Rights are the parameters of GrantRights.
type Rights struct {
	// User is the name of the user that runs the operator.
	User string

	// Namespace is where the operator keeps its lease and its certificate. It is created if it does not exist.
	Namespace string

	// TrainingJobGroup is the API group of TrainingJobs, breezeml.ai if empty.
	TrainingJobGroup string
}

// GrantRights gives a user exactly the roles that the chart gives to the operator. It returns when they are
// effective.
func GrantRights(ctx context.Context, config *rest.Config, to Rights) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the operator's rights: %w", err)
	}
	roles, err := readRoles("muster/rights", to.TrainingJobGroup)
	if err != nil {
		return err
	}
	for _, role := range roles {
		role.SetName(rightsName)
		if role.GetNamespace() == ownNamespace {
			role.SetNamespace(to.Namespace)
		}
	}
	roles = joined(roles)
	for _, role := range roles {
		// A freshly started API server may not have created the system namespaces yet.
		if err := ensureNamespace(ctx, client, role.GetNamespace()); err != nil {
			return err
		}
		for _, object := range []*unstructured.Unstructured{role, bindingOf(role, to.User)} {
			if err := applyRight(ctx, client.RbacV1().RESTClient(), object); err != nil {
				return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	for _, role := range roles {
		if err := awaitRight(ctx, client, role, to.User); err != nil {
			return fmt.Errorf("waiting until the rights of %s %s are effective: %w", role.GetKind(), role.GetName(), err)
		}
	}
	return nil
}

// joined returns one role for all of the same kind and namespace, with the rules of each: the operator's own namespace
// may also be a namespace that it reads for another purpose, and one of the two roles would replace the other.
func joined(roles []*unstructured.Unstructured) (out []*unstructured.Unstructured) {
	for _, role := range roles {
		at := slices.IndexFunc(out, func(r *unstructured.Unstructured) bool {
			return r.GetKind() == role.GetKind() && r.GetNamespace() == role.GetNamespace()
		})
		if at < 0 {
			out = append(out, role)
			continue
		}
		rules, _ := out[at].Object["rules"].([]any)
		more, _ := role.Object["rules"].([]any)
		out[at].Object["rules"] = slices.Concat(rules, more)
	}
	return out
}

// GrantUsers lets users who have the cluster's own roles view, edit and admin use the job APIs, and everybody read the
// operator's configuration, as the chart does.
func GrantUsers(ctx context.Context, config *rest.Config, trainingJobGroup string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the users' rights: %w", err)
	}
	rights, err := readRoles("muster/users", trainingJobGroup)
	if err != nil {
		return err
	}
	for _, right := range rights {
		if err := ensureNamespace(ctx, client, right.GetNamespace()); err != nil { // as in GrantRights
			return err
		}
		if err := applyRight(ctx, client.RbacV1().RESTClient(), right); err != nil {
			return fmt.Errorf("applying %s %s: %w", right.GetKind(), right.GetName(), err)
		}
	}
	return nil
}

// readRoles returns the roles of a folder, and bindings if it has any, with TrainingJobs in the given API group,
// breezeml.ai if empty.
func readRoles(folder, trainingJobGroup string) ([]*unstructured.Unstructured, error) {
	return read(folder, func(text []byte) []byte {
		return bytes.ReplaceAll(text, []byte(breezeml.DefaultGroup), []byte(cmp.Or(trainingJobGroup, breezeml.DefaultGroup)))
	})
}

// ensureNamespace creates the namespace if a name is given and it does not exist.
func ensureNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	if name == "" {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the namespace %s: %w", name, err)
	}
	return nil
}

// awaitRight returns when the user may do the first thing that the role allows. The API server's authorizer learns of
// roles through a watch, a moment after they were written.
func awaitRight(ctx context.Context, client kubernetes.Interface, role *unstructured.Unstructured, user string) error {
	var decoded rbacv1.Role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &decoded); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	if len(decoded.Rules) == 0 {
		return nil
	}
	rule := decoded.Rules[0]
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{
		Namespace: role.GetNamespace(), Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource,
		Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	return wait.PollUntilContextCancel(ctx, servedPoll, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: asked}}
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	})
}

// bindingOf returns the binding of the role to the user.
func bindingOf(role *unstructured.Unstructured, user string) *unstructured.Unstructured {
	binding := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": role.GetKind(), "name": role.GetName()},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}},
	}}
	binding.SetAPIVersion(role.GetAPIVersion())
	binding.SetKind(role.GetKind() + "Binding")
	binding.SetName(role.GetName())
	binding.SetNamespace(role.GetNamespace())
	return binding
}

func applyRight(ctx context.Context, client rest.Interface, object *unstructured.Unstructured) error {
	body, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return client.Patch(types.ApplyPatchType).
		NamespaceIfScoped(object.GetNamespace(), object.GetNamespace() != "").
		Resource(strings.ToLower(object.GetKind())+"s").
		Name(object.GetName()).
		VersionedParams(&forceAsMuster, metav1.ParameterCodec).
		Body(body).Do(ctx).Error()
}
