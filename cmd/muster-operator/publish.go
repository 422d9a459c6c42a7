package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/config"
)

// publishRetry is the interval between attempts to publish the configuration.
const publishRetry = 10 * time.Second

// publish makes the leader publish its configuration in a ConfigMap.
func publish(mgr manager.Manager, cfg *v1alpha1.Configuration) error {
	wanted, err := config.Published(cfg)
	if err != nil {
		return err
	}
	write := manager.RunnableFunc(func(ctx context.Context) error { // runs only on the leader
		err := wait.PollUntilContextCancel(ctx, publishRetry, true, func(ctx context.Context) (bool, error) {
			err := publishOnce(ctx, mgr.GetAPIReader(), mgr.GetClient(), wanted)
			if apierrors.IsForbidden(err) {
				return false, err
			}
			return err == nil, nil // not critical: retry until it succeeds
		})
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Info("not publishing the configuration: muster explain will assume the default one",
				"why", err.Error())
		}
		return nil
	})
	if err := mgr.Add(write); err != nil {
		return fmt.Errorf("adding what publishes the configuration: %w", err)
	}
	return nil
}

// publishOnce creates or updates the ConfigMap if it differs from wanted.
func publishOnce(ctx context.Context, reader client.Reader, writer client.Writer, wanted *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	// Read-your-writes would start an informer for all ConfigMaps of the cluster.
	const unseen = client.DisableReadYourWritesConsistency
	err := reader.Get(ctx, client.ObjectKeyFromObject(wanted), &found)
	switch {
	case apierrors.IsNotFound(err):
		return writer.Create(ctx, wanted.DeepCopy(), unseen)
	case err != nil || maps.Equal(found.Data, wanted.Data):
		return err
	}
	found.Data = wanted.Data
	return writer.Update(ctx, &found, unseen)
}
