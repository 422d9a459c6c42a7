package main

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// newLogger returns the operator's logger.
func newLogger(options ...zap.Opts) logr.Logger {
	logger := zap.New(options...)
	return logger.WithSink(cancellations{logger.GetSink()})
}

// cancellations is a sink for which it is no error that a call was cancelled. Nobody waits for a cancelled call any
// more: an operator that stops, or has lost its lease, cancels all its calls.
type cancellations struct{ logr.LogSink }

// Init accounts for the frame that this sink adds to each call.
func (c cancellations) Init(info logr.RuntimeInfo) {
	info.CallDepth++
	c.LogSink.Init(info)
}

// Error logs at debug level what was cancelled, and everything else as it is.
func (c cancellations) Error(err error, message string, keysAndValues ...any) {
	if !errors.Is(err, context.Canceled) {
		c.LogSink.Error(err, message, keysAndValues...)
		return
	}
	if c.Enabled(1) {
		c.Info(1, message, append(keysAndValues[:len(keysAndValues):len(keysAndValues)], "cause", err.Error())...)
	}
}

func (c cancellations) WithValues(keysAndValues ...any) logr.LogSink {
	return cancellations{c.LogSink.WithValues(keysAndValues...)}
}

func (c cancellations) WithName(name string) logr.LogSink {
	return cancellations{c.LogSink.WithName(name)}
}
