package main

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/install"
)

// installFor prepares the cluster for an operator that runs as user o.installFor, with only the rights that it needs,
// and for the users of its jobs. It does what the chart does, for users without Helm.
func installFor(ctx context.Context, cluster *rest.Config, cfg *v1alpha1.Configuration, o options) error {
	if err := installAPIs(ctx, cluster, cfg, o.installFor, o.adoptAPIs); err != nil {
		return err
	}
	if err := install.GrantUsers(ctx, cluster, *cfg.TrainingJob.Group); err != nil {
		return err
	}
	return install.GrantRights(ctx, cluster,
		install.Rights{User: o.installFor, Namespace: ownNamespace(o), TrainingJobGroup: *cfg.TrainingJob.Group})
}

// installAPIs applies the CRDs, and the policies that reserve some operations for user, the operator's.
func installAPIs(ctx context.Context, cluster *rest.Config, cfg *v1alpha1.Configuration, user string,
	adopt bool) error {
	err := install.Apply(ctx, cluster, install.Options{
		Log: ctrl.Log.WithName("install"), OperatorUser: user, Adopt: adopt, Volcano: *cfg.Volcano,
		TrainingJobGroup: *cfg.TrainingJob.Group, DenyLatticeJobChanges: *cfg.LatticeJob.Immutable == v1alpha1.ImmutableDeny,
	})
	if err != nil {
		return fmt.Errorf("installing the APIs: %w", err)
	}
	return nil
}

// ownName returns the user name that the API server knows this program by; empty if that cannot be found out: the
// policies then name the chart's user.
func ownName(ctx context.Context, cluster *rest.Config) string {
	clients, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return ""
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		ctrl.Log.WithName("install").Info("cannot get the operator's own user name, so the policies name the chart's user",
			"why", err.Error())
		return ""
	}
	return review.Status.UserInfo.Username
}
