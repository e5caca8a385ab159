package plugin

func processUnderTest() {}
