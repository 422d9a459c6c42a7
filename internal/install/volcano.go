package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

const (
	volcanoJobs = "jobs.batch.volcano.sh"
	// volcanoPodGroups is a definition that every Volcano installation brings and Muster never does.
	volcanoPodGroups = "podgroups.scheduling.volcano.sh"

	volcanoSuffix   = ".volcano.sh"
	volcanoPolicies = "muster-vcjob"
)

// volcanoDefinitions are the names of the definitions that VolcanoRunsJobs reads.
var volcanoDefinitions = []string{volcanoJobs, volcanoPodGroups}

// VolcanoRunsJobs reports whether Volcano runs the Jobs of batch.volcano.sh: the mode says so, or leaves it to the
// definitions in the cluster. If the definition of Jobs is Muster's, Volcano runs them nevertheless once it was
// installed on top, since its installation may keep an existing definition.
func VolcanoRunsJobs(ctx context.Context, config *rest.Config, mode v1alpha1.VolcanoMode) (bool, error) {
	switch mode {
	case v1alpha1.VolcanoExternal:
		return true, nil
	case v1alpha1.VolcanoNative:
		return false, nil
	}
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("making a client for custom resource definitions: %w", err)
	}
	definition, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, volcanoJobs, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the definition %s: %w", volcanoJobs, err)
	case !isMusters(definition):
		return true, nil
	}
	switch _, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, volcanoPodGroups,
		metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the definition %s: %w", volcanoPodGroups, err)
	}
	return true, nil
}

// withoutVolcano drops the definitions of Volcano's kinds and the policies for them.
func withoutVolcano(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return strings.HasSuffix(o.GetName(), volcanoSuffix) || strings.HasPrefix(o.GetName(), volcanoPolicies)
	})
}
