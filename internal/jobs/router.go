package jobs

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// router says which jobs of one API are reconciled for an event.
type router[T client.Object] struct {
	api           served[T]
	apis          []Served
	read          *reader[T]
	prebuiltIndex prebuiltIndex
	gone          goneNames
	clock         clock.PassiveClock
}
