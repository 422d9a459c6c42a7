package install

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/config/v1alpha1"
)

// DefaultOperatorUser is the operator's user where none is named, as in tests. The chart names its service account.
const DefaultOperatorUser = "system:serviceaccount:muster-system:muster-operator"

// Options are the parameters of Apply. The zero value is valid.
type Options struct {
	// OperatorUser is the only user to whom the policies leave what is the operator's, such as to admit and resize
	// Workloads; DefaultOperatorUser if empty. Apply refuses one with quotes.
	OperatorUser string

	// Volcano decides which controller runs Volcano's kinds, VolcanoAuto if empty. If it is Volcano, nothing is
	// applied for them.
	Volcano v1alpha1.VolcanoMode

	// TrainingJobGroup is the API group of TrainingJobs, breezeml.ai if empty.
	TrainingJobGroup string

	// DenyLatticeJobChanges makes changes to the spec of a running LatticeJob an error; by default they only warn.
	DenyLatticeJobChanges bool

	// Adopt takes over definitions that another project has installed; by default they are an error.
	Adopt bool

	// Log receives what the cluster does not support. The zero value discards it.
	Log logr.Logger
}

// Apply creates or updates the custom resource definitions and admission policies of this build, and returns when
// every API is served. It does not write objects that are up to date. It returns the first error of the API server,
// or the context's error; what was applied before that stays. A new policy takes effect about a second after it was
// written.
func Apply(ctx context.Context, config *rest.Config, options Options) error {
	if options.OperatorUser == "" {
		options.OperatorUser = DefaultOperatorUser
	}
	if options.TrainingJobGroup == "" {
		options.TrainingJobGroup = breezeml.DefaultGroup
	}
	definitions, policies, err := wanted(ctx, config, options)
	if err != nil {
		return err
	}
	// A start makes some forty requests at once and none later; the default rate limit would stretch them over
	// seconds.
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	if err := applyDefinitions(ctx, config, definitions, options.Adopt); err != nil {
		return err
	}
	return applyPolicies(ctx, config, policies, options.Log)
}

// applyDefinitions applies the definitions and returns when all are served. It fails on another project's unless
// adopt is set.
func applyDefinitions(ctx context.Context, config *rest.Config, definitions []*unstructured.Unstructured,
	adopt bool) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for custom resource definitions: %w", err)
	}
	there := definitionStore(client)
	if !adopt {
		if err := refuseForeign(ctx, there, definitions); err != nil {
			return err
		}
	}
	if err := refuseStoredVersions(ctx, there, definitions); err != nil {
		return err
	}
	if err := applyAll(ctx, there, definitions); err != nil {
		return err
	}
	return waitUntilServed(ctx, client, definitions)
}

// applyPolicies applies the admission policies, without the mutating ones if the cluster does not serve that API.
func applyPolicies(ctx context.Context, config *rest.Config, policies []*unstructured.Unstructured,
	log logr.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for admission policies: %w", err)
	}
	validating, mutating := splitMutating(policies)
	if err := applyAll(ctx, policyStore(client), validating); err != nil {
		return err
	}
	switch served, err := servesMutatingPolicies(client.Discovery()); {
	case err != nil:
		return fmt.Errorf("asking for the kinds of admission policies: %w", err)
	case !served:
		log.Info("the cluster does not serve MutatingAdmissionPolicy: batch Jobs with a queue are suspended when the operator sees them, not at creation, and their pods cannot report progress")
		return nil
	}
	return applyAll(ctx, mutatingPolicyStore(client), mutating)
}

// wanted returns the definitions and policies to apply, given the options and which controller runs Volcano's Jobs.
func wanted(ctx context.Context, config *rest.Config,
	options Options) (definitions, policies []*unstructured.Unstructured, err error) {
	if definitions, err = readDefinitions(options.TrainingJobGroup); err != nil {
		return nil, nil, err
	}
	if policies, err = readPolicies(options.OperatorUser, options.TrainingJobGroup); err != nil {
		return nil, nil, err
	}
	if options.DenyLatticeJobChanges {
		denyLatticeJobChanges(policies)
	}
	elsewhere, err := VolcanoRunsJobs(ctx, config, options.Volcano)
	if err != nil {
		return nil, nil, err
	}
	if elsewhere {
		definitions, policies = withoutVolcano(definitions), withoutVolcano(policies)
		options.Log.Info("Volcano runs the Jobs of batch.volcano.sh: its definitions are left unchanged")
	}
	return definitions, policies, nil
}

// splitMutating splits policies into validating and mutating ones. Not every supported API server has the mutating
// kind.
func splitMutating(policies []*unstructured.Unstructured) (validating, mutating []*unstructured.Unstructured) {
	for _, policy := range policies {
		switch policy.GetKind() {
		case mutatingPolicyKind, mutatingBindingKind:
			mutating = append(mutating, policy)
		default:
			validating = append(validating, policy)
		}
	}
	return validating, mutating
}

func servesMutatingPolicies(client discovery.DiscoveryInterface) (bool, error) {
	resources, err := client.ServerResourcesForGroupVersion(admissionv1.SchemeGroupVersion.String())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(resources.APIResources,
		func(r metav1.APIResource) bool { return r.Kind == mutatingPolicyKind }), nil
}
