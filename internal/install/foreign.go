package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/musterhq/muster/api/muster"
)

// refuseForeign fails if the cluster has definitions of the same names that another project has installed: that
// project's controllers would find them changed, and two controllers would run the same jobs. The error names their
// owner. Volcano's definitions are not checked: the Volcano mode decides about them.
func refuseForeign(ctx context.Context, in store, definitions []*unstructured.Unstructured) error {
	return checkLive(ctx, in, definitions, func(_ *unstructured.Unstructured,
		live *apiextensionsv1.CustomResourceDefinition) error {
		// Older builds set the hash but not the label.
		if isMusters(live) || live.Annotations[hashAnnotation] != "" || strings.HasSuffix(live.Name, volcanoSuffix) {
			return nil
		}
		return fmt.Errorf("%s belongs to %s: uninstall that first, or take its definitions over with --adopt-apis",
			live.Name, ownerOf(live))
	})
}

// refuseStoredVersions fails if the cluster has stored objects in versions that a wanted definition lacks. The API
// server would refuse to remove the version, after other definitions have been applied.
func refuseStoredVersions(ctx context.Context, in store, definitions []*unstructured.Unstructured) error {
	return checkLive(ctx, in, definitions, func(wanted *unstructured.Unstructured,
		live *apiextensionsv1.CustomResourceDefinition) error {
		versions, _, err := unstructured.NestedSlice(wanted.Object, "spec", "versions")
		if err != nil {
			return fmt.Errorf("reading the versions of %s: %w", live.Name, err)
		}
		for _, stored := range live.Status.StoredVersions {
			if !slices.ContainsFunc(versions, func(v any) bool { return v.(map[string]any)["name"] == stored }) {
				err = errors.Join(err, fmt.Errorf("%s has stored objects in %s, which Muster does not serve: uninstall %s, and create them again",
					live.Name, stored, ownerOf(live)))
			}
		}
		return err
	})
}

// checkLive checks each wanted definition that the cluster has already, and joins the errors.
func checkLive(ctx context.Context, in store, definitions []*unstructured.Unstructured,
	check func(wanted *unstructured.Unstructured, live *apiextensionsv1.CustomResourceDefinition) error) error {
	live, err := in.list(ctx)
	if err != nil {
		return fmt.Errorf("reading the live objects: %w", err)
	}
	var wrong []error
	for _, wanted := range definitions {
		if there, ok := live[identify(wanted)].(*apiextensionsv1.CustomResourceDefinition); ok {
			wrong = append(wrong, check(wanted, there))
		}
	}
	return errors.Join(wrong...)
}

// isMusters reports whether Muster has installed the definition.
func isMusters(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.Labels[muster.ServedLabel] == "true"
}

// ownerOf describes the owner of a definition, as far as its metadata tells.
func ownerOf(definition *apiextensionsv1.CustomResourceDefinition) string {
	if release := definition.Annotations["meta.helm.sh/release-name"]; release != "" {
		return fmt.Sprintf("the Helm release %s in namespace %s", release,
			definition.Annotations["meta.helm.sh/release-namespace"])
	}
	for _, label := range []string{"app.kubernetes.io/part-of", "app.kubernetes.io/name"} {
		if name := definition.Labels[label]; name != "" {
			return name
		}
	}
	for _, fields := range definition.ManagedFields {
		return "whoever applied it as " + fields.Manager
	}
	return "somebody else"
}
