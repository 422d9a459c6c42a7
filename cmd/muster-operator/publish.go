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

// publishRetry is how long to wait after the configuration could not be published.
const publishRetry = 10 * time.Second

// publish has the leader say by what configuration it decides.
func publish(mgr manager.Manager, cfg *v1alpha1.Configuration) error {
	wanted, err := config.Published(cfg)
	if err != nil {
		return err
	}
	write := manager.RunnableFunc(func(ctx context.Context) error { // only the leader runs it
		err := wait.PollUntilContextCancel(ctx, publishRetry, true, func(ctx context.Context) (bool, error) {
			err := publishOnce(ctx, mgr.GetAPIReader(), mgr.GetClient(), wanted)
			if apierrors.IsForbidden(err) {
				return false, err
			}
			return err == nil, nil // nothing depends on it: it is tried until it is there
		})
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Info("not publishing the configuration: muster explain will assume the default one", "why", err.Error())
		}
		return nil
	})
	if err := mgr.Add(write); err != nil {
		return fmt.Errorf("adding what publishes the configuration: %w", err)
	}
	return nil
}

// publishOnce writes the ConfigMap unless it is as wanted.
func publishOnce(ctx context.Context, reader client.Reader, writer client.Writer, wanted *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	// Nobody waits until the cache has seen it: then all ConfigMaps of the cluster would be kept there.
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
