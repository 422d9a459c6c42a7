package validation
func jobSetSchemaRules() []rule {return nil}
func jobSetRules() []rule {return nil}
func jobSetUpdateRules() []rule {return nil}
func jobSetPolicyRules() []rule {return nil}
func queueRules() []rule {return nil}
func flavorRules() []rule {return nil}
