"""What runners report and which jobs they claim, by the exchange or by single calls; changes of a status by users."""
